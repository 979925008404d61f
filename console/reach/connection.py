"""One ssh connection: made within the handshake limits, through shared jump hosts, with every host key checked."""

from __future__ import annotations

import asyncio
import importlib
import logging
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from console.fleet.inventory import Host
from console.reach.faults import ConnectFailed, Fault, explain, explain_odd, explain_setup, is_dropped_login
from console.reach.jumps import SharedJump, Watch
from console.reach.limits import HandshakeLimits, Timings
from console.reach.targets import Target, resolve
from console.readings.output import Outcome
from console.sanitize import line

if TYPE_CHECKING:
    import asyncssh

    Made = tuple[asyncssh.SSHClientConnection, Watch]

_LOGIN_TRIES = 4
"""Tries within one attempt where sshd drops the login (MaxStartups)."""


def load_asyncssh() -> Any:
    """asyncssh (0.2 s of CPU): imported on first use, never before the first paint."""
    # without any handler Python prints warnings to the terminal, which belongs to the console
    if not (logger := logging.getLogger("asyncssh")).handlers:
        logger.addHandler(logging.NullHandler())
    return importlib.import_module("asyncssh")


class Connector:
    """Makes the connections of one host. Nothing is contacted before `connect`."""

    def __init__(
        self,
        host: Host,
        limits: HandshakeLimits,
        timings: Timings,
        overrides: Mapping[str, Any] | None = None,
    ) -> None:
        self._host = host
        self._limits = limits
        self._timings = timings
        self._overrides = dict(overrides or {})
        self._leases: list[SharedJump] = []
        self._reading: dict[str, asyncio.Future[Target]] = {}

    async def connect(self) -> Made:
        """Log in. The watch's `lost` is set when the connection ends. Raises ConnectFailed."""
        self.release()
        try:
            await asyncio.to_thread(load_asyncssh)
            target = await self._resolve(self._host.ssh, self._overrides)
            return await self._through(target, (target.label,))
        except BaseException as error:
            self.release()
            if isinstance(error, ConnectFailed) or not isinstance(error, Exception):
                raise
            # whatever else a library raises must not end the attempts: it is a fault of this one
            raise ConnectFailed(explain_odd(error, self._host.ssh)) from error

    def release(self) -> None:
        """Give back the jump hosts that the last connection went through."""
        for lease in self._leases:
            lease.release()
        self._leases.clear()

    async def _resolve(self, text: str, overrides: Mapping[str, Any], *, is_jump: bool = False) -> Target:
        work = partial(resolve, text, self._host, self._timings, overrides, is_jump=is_jump)
        if text not in self._reading:
            self._reading[text] = asyncio.ensure_future(asyncio.to_thread(work))
            self._reading[text].add_done_callback(_heard)
        reading = self._reading[text]
        # a thread cannot be ended: one that hangs is waited for again, so that a name holds one at most
        if not (await asyncio.wait((reading,), timeout=self._timings.login_limit))[0]:
            problem = f"{line(text, 200)}: ssh_config or a key file was not read within {self._timings.login_limit:g} s"
            hint = "does a command of `Match exec` hang, or the file system of a key?"
            raise ConnectFailed(Fault(Outcome.UNREACHABLE, problem, hint, stubborn=True))
        del self._reading[text]
        try:
            return reading.result()
        except (ValueError, OSError, RecursionError) as error:
            raise ConnectFailed(explain_setup(error, text)) from error

    async def _through(self, target: Target, passed: tuple[str, ...]) -> Made:
        """Log in to `target` through its jump hosts; `passed` are the names on the way so far."""
        if not target.jump:
            return await self._log_in(target, None, f"{target.host}:{target.port}")
        tunnel: asyncssh.SSHClientConnection | None = None
        chain: tuple[str, ...] = ()
        for spec in (word.strip() for word in target.jump.split(",")):
            if spec in passed:
                ring = " via ".join((*passed, spec))
                hint = "correct ProxyJump in ssh_config"
                raise ConnectFailed(Fault(Outcome.UNREACHABLE, f"jump hosts lead round in a ring: {ring}", hint, True))
            passed, chain = (*passed, spec), (*chain, spec)
            tunnel = await self._jump(chain, tunnel, passed)
        return await self._log_in(target, tunnel, chain[-1])

    async def _jump(
        self, chain: tuple[str, ...], tunnel: asyncssh.SSHClientConnection | None, passed: tuple[str, ...]
    ) -> asyncssh.SSHClientConnection:
        """The one connection to the last jump host of `chain`, shared by every host behind it."""
        spec = chain[-1]
        key = (chain, self._host.config, self._host.known_hosts)
        shared = self._limits.shared.get(key)
        if not isinstance(shared, SharedJump):
            shared = self._limits.shared[key] = SharedJump()
        self._leases.append(shared.take())

        async def make() -> Made:
            target = await self._resolve(spec, {}, is_jump=True)
            if tunnel is not None:
                return await self._log_in(target, tunnel, spec)
            return await self._through(target, passed)

        try:
            return await shared.connection(make)
        except ConnectFailed as failed:
            fault = failed.fault
            problem = f"jump host {spec}: {fault.problem}"
            raise ConnectFailed(Fault(fault.outcome, problem, fault.hint, fault.stubborn, fault.host_key)) from failed

    async def _log_in(self, target: Target, tunnel: asyncssh.SSHClientConnection | None, gate: str) -> Made:
        for attempt in range(1, _LOGIN_TRIES + 1):
            try:
                async with self._limits.handshake(gate):
                    return await self._log_in_once(target, tunnel)
            except _Dropped as dropped:
                if attempt == _LOGIN_TRIES:
                    raise ConnectFailed(explain(dropped.error, target)) from dropped.error
            await asyncio.sleep(self._timings.first_retry * random.uniform(0.2, 1.0) * attempt)  # noqa: S311
        raise AssertionError("unreachable")

    async def _log_in_once(self, target: Target, tunnel: asyncssh.SSHClientConnection | None) -> Made:
        asyncssh = load_asyncssh()
        watch = Watch()
        try:
            return await self._bounded(target, tunnel, watch), watch
        except asyncssh.KeyExchangeFailed as error:
            if "host key" not in str(error):
                raise ConnectFailed(explain(error, target)) from error
        except (asyncssh.Error, OSError, UnicodeError) as error:
            if watch.key is None and is_dropped_login(error):
                raise _Dropped(error) from error
            raise ConnectFailed(self._explain(error, target, watch)) from error
        # the host no longer has a key of the known types: ask for any, so that its fingerprint can be shown
        try:
            connection = await self._bounded(target, tunnel, watch, server_host_key_algs="default")
        except (asyncssh.Error, OSError) as error:
            raise ConnectFailed(self._explain(error, target, watch)) from error
        return connection, watch

    def _explain(self, error: BaseException, target: Target, watch: Watch) -> Fault:
        limit = target.connect_limit if not watch.connected else 0.0
        return explain(error, target, key=watch.key, limit=limit, connected=watch.connected)

    async def _bounded(
        self, target: Target, tunnel: asyncssh.SSHClientConnection | None, watch: Watch, **more: Any
    ) -> asyncssh.SSHClientConnection:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(target.connect_limit) as limit:

            def connected() -> None:
                limit.reschedule(loop.time() + self._timings.login_limit + 1.0)

            connection: asyncssh.SSHClientConnection = await load_asyncssh().connect(
                **{"connect_timeout": None, **target.connect, **more},
                tunnel=tunnel,
                client_factory=_client_factory(target, watch, connected),
            )
        return connection


def _heard(reading: asyncio.Future[Target]) -> None:
    """Its error is nobody's surprise where the link was closed meanwhile: asyncio would print it."""
    if not reading.cancelled():
        reading.exception()


class _Dropped(Exception):
    """sshd dropped the login; worth trying again."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def _client_factory(target: Target, watch: Watch, connected: Callable[[], None]) -> Callable[[], asyncssh.SSHClient]:
    base: type[asyncssh.SSHClient] = load_asyncssh().SSHClient

    class Client(base):  # type: ignore[valid-type, misc]
        """Refuses every key that asyncssh did not find in known_hosts, and says which it was."""

        def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
            watch.connected = True
            connected()

        def connection_lost(self, exc: Exception | None) -> None:
            watch.why = "" if exc is None else line(str(exc), 200)
            watch.lost.set()

        def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
            watch.key = target.known.judge(host, addr, port, key, hop=target.label)
            return False

        def validate_host_ca_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
            watch.key = target.known.judge(host, addr, port, key, hop=target.label)
            return False

    return Client
