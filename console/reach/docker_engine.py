"""The Docker Engine of one host: the docker SDK over a forwarded socket, in threads that end on close.

What is asked, and nothing else (a stand-in for Docker needs only these five; all are GET, none changes anything):

`/version`
    Unversioned, once a connection. Read: `ApiVersion`, `MinAPIVersion`, `Version`, `Platform.Name`, `Components[].Name`.
    The version used is the highest that both sides know, here called N.
`/vN/containers/json?all=1&limit=-1&size=0&trunc_cmd=0`
    A JSON list. Read of each row: `Id`, `Names`, `Image`, `ImageID`, `Created`, `State`, `Status`, `Labels`,
    `Ports[].PublicPort`, `Mounts[]`, `HostConfig.NetworkMode`.
`/vN/containers/{id}/json`
    One object. Read: `Id`, `Name`, `Image`, `Created`, `RestartCount`, `Path`, `Args`, `State.*` (with `Health.Status`),
    `Mounts[].{Type,Source,Destination,RW}`, `Config.{Image,Entrypoint,Cmd,Labels,Tty}`,
    `HostConfig.{RestartPolicy,AutoRemove,NetworkMode,Binds,PortBindings}`, `NetworkSettings.Ports`.
    404 with `{"message": "No such container: ..."}` for one that is gone.
`/vN/events?since=T&filters={"type":["container"],"event":[...]}`
    One kept-open answer with `Transfer-Encoding: chunked` and a `Date` header; past events since T first, then live ones, one JSON
    object a line. Read: `Type`, `Action` (old: `status`), `Actor.ID` (old: `id`),
    `Actor.Attributes.{name,image,exitCode,signal}`, `timeNano` (old: `time`). Filters may be ignored: what is not wanted is dropped here.
`/vN/containers/{id}/logs?stdout=1&stderr=1&timestamps=1&follow=1&tail=200` (`tail=all&since=T` after a reconnect)
    One kept-open chunked answer. Unless the container has a TTY, frames of an 8-byte header (stream 1 or 2, three zero
    bytes, length as big-endian 32 bits) and that many bytes; each line starts with an RFC 3339 time and a space.

Errors are status 400 and above with `{"message": "..."}`. Connections are kept alive where the server allows it; event and log
streams each hold a connection of their own, so a stand-in must serve several at once.
"""

from __future__ import annotations
