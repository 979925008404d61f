"""A stand-in inference engine: real HTTP, SGLang or vLLM series that move at an exactly known rate.

Standard library only and one file, tables included, so that it also runs inside a container from a single read-only
mount: `python3 engine.py --kind sglang --port 8210`. That, and not taste, is why this module is longer than its fellows.
Names, labels and buckets are those of SGLang 0.5.23 and vLLM 0.32.0; every number follows from the options. Counters
of tokens and steps are rate x elapsed, unrounded.

Faults are switched at run time by JSON lines on stdin with `--control`, or by `POST /__fault {"fault": "hang"}` with the
token of the environment variable LANESWAP_ENGINE_TOKEN in the header X-Laneswap-Token; where that is not set there is no
such path, as anyone on the machine could ask it. `GET /__truth` answers what the series must say.
"""

# ruff: noqa: E501 - series and log lines stand as the engines write them
from __future__ import annotations

import argparse
import hmac
import io
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType
from typing import Any, NamedTuple

FAULTS = (
    "none",
    "hang",  # every answer is 200, counters stand still, requests stay running
    "503",  # health and API answer 503, counters stand still
    "html",  # everything is a proxy's 200 HTML page
    "truncated",  # /metrics is cut inside a number, Content-Length tells of more
    "empty",  # /metrics is 200 with no body
    "reset",  # counters start again at 0, once
    "other-engine",  # /metrics holds the other engine's series
    "metrics-off",  # /metrics is 404
    "slow",  # each answer takes `seconds` (3) longer
    "silent",  # connections are accepted, nothing is ever answered
    "idle",  # no requests, no tokens
    "prefill-only",  # prompt tokens move, decode does not
    "exit",  # the process ends with `code` (1)
)
FROZEN = ("hang", "503", "silent")
TOKEN_VARIABLE, TOKEN_HEADER = "LANESWAP_ENGINE_TOKEN", "X-Laneswap-Token"
MOST_ORDER = 65536
HTML = (
    "<!DOCTYPE html>\n<html><head><title>504 Gateway Time-out</title></head>\n<body><center><h1>504 Gateway Time-out</h1>"
    "</center><hr><center>nginx/1.24.0 (Ubuntu)</center></body></html>\n"
)
TIME_BOUNDS = {
    "sglang": "0.1 0.2 0.4 0.6 0.8 1 2 4 6 8 10 20 40 60 80 100 200 400",
    "vllm": "0.001 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 20 40 80 160 640 2560",
}
STEP_BOUNDS = {
    "sglang": "0.002 0.004 0.006 0.008 0.01 0.015 0.02 0.025 0.03 0.035 0.04 0.06 0.08 0.1 0.2 0.4 0.6 0.8 1 2 4 6 8",
    "vllm": "0.01 0.025 0.05 0.075 0.1 0.15 0.2 0.3 0.4 0.5 0.75 1 2.5 5 7.5 10 20 40 80",
}
REQUEST_BOUNDS = "0.3 0.5 0.8 1 1.5 2 2.5 5 10 15 20 30 40 50 60 120 240 480 960 1920 7680"
LENGTH_BOUNDS = (
    "100 300 500 700 1000 1500 2000 3000 4000 5000 6000 7000 8000 9000 10000 12500 15000 17500 20000 22500 25000 27500 30000 "
    "35000 40000 60000 80000 100000 200000 300000 400000 600000 800000 1000000 1100000"
)
BOUNDS = {
    "request": REQUEST_BOUNDS,
    "token": LENGTH_BOUNDS,
    "iteration": "1 8 16 32 64 128 256 512 1024 2048 4096 8192 16384",
    "small": "1 2 5 10 20",
}

# One family a line: type name | scope [label] | values | help. A value is a number or a key of `Engine.values`; with a
# label, values are `label value:number or key`. A histogram's value is `median:bounds:count`.
SGLANG = """\
hist time_to_first_token_seconds|R|ttft:time:finished|Histogram of time to first token in seconds.
hist inter_token_latency_seconds|M|tpot:step:decode|Histogram of inter-token latency in seconds.
hist e2e_request_latency_seconds|R|e2e:time:finished|Histogram of End-to-end request latency in seconds
hist request_time_per_output_token_seconds|R|tpot:step:finished|Per-request TPOT in seconds.
hist prompt_tokens_histogram|M|prompt_length:token:finished|Histogram of prompt token length.
hist uncached_prompt_tokens_histogram|M|uncached_length:token:finished|Histogram of uncached (compute) prompt token length.
hist generation_tokens_histogram|M|length:token:finished|Histogram of generation token length.
hist queue_time_seconds|S|queue:request:finished|Histogram of queueing time in seconds.
counter prefill_effective_tokens_total|S mode|input:prefill device_hit:cached host_hit:0 storage_hit:0|Effective prefill tokens.
counter scheduler_idle_seconds_total|S|idle_seconds|Total wall time while the scheduler has no runnable or queued work.
counter scheduler_process_cpu_seconds_total|S|0|Total CPU time consumed by the scheduler process across all threads.
counter scheduler_stage_seconds_total|S category|other:0 recv_requests:0 run_batch:0 idle:0|Scheduler-loop wall time by stage.
counter dp_attention_tokens_total|S kind|scheduled:0 imbalance:0|Tokens of MLP-sync steps on this DP rank.
counter dp_attention_steps_total|S rank_state|active:0 idle:0|MLP-sync steps on this DP rank.
counter prompt_tokens_total|R|prompt_finished|Number of prefill tokens processed.
counter generation_tokens_total|R|generated_finished|Number of generation tokens processed.
counter spec_verify_calls_total|M|drafts_finished|Number of speculative decoding verification calls.
counter cached_tokens_total|M cache_source|device:cached|Number of cached prompt tokens by source (device/host/storage).
counter num_requests_total|R|finished|Number of requests processed.
counter realtime_tokens_total|S mode|prefill_compute:prefill prefill_cache:cached decode:decode|Total number of tokens processed.
counter cuda_graph_passes_total|S mode|decode_cuda_graph:steps|Total number of forward passes categorized by CUDA graph.
counter num_aborted_requests_total|M|0|Number of requests aborted.
gauge num_retracted_reqs|P|0|The number of retracted requests.
gauge num_paused_reqs|P|0|The number of paused requests by async weight sync.
gauge routing_keys_active|-|0|Number of unique routing keys with active requests
gauge max_total_num_tokens|S|pool|Maximum total number of tokens in the KV cache pool.
gauge weight_memory_usage_gb|S|71.4|Memory used by model weights in GB.
gauge kv_cache_memory_usage_gb|S|18.9|Memory used by the KV cache pools in GB.
gauge graph_memory_usage_gb|S phase|decode:0.8 target_verify:0.6|Memory used by captured device graphs in GB.
gauge page_size|S|64|KV cache page size in tokens.
gauge num_pages|S|pages|Number of KV cache pages.
gauge context_len|S|context|Maximum context length.
gauge startup_available_gpu_memory_gb|S|9.2|Available GPU memory in GB at startup.
gauge startup_time_seconds|M phase|load_weight:301.2 kv_cache_allocation:4.1 tokenizer_e2e:boot|Engine startup duration by phase.
gauge startup_cuda_graph_time_seconds|M phase|decode:21.0 target_verify:17.5|CUDA graph capture duration by phase in seconds.
gauge num_running_reqs|S|running|The number of running requests.
gauge num_queue_reqs|S|waiting|The number of requests in the waiting queue.
gauge num_grammar_queue_reqs|S|0|The number of requests in the grammar waiting queue.
gauge gen_throughput|S|tps|The generation throughput (token/s).
gauge cache_hit_rate|S|hit_rate|The prefix cache hit rate.
gauge decode_sum_seq_lens|S|used|The sum of all sequence lengths in decode.
gauge token_usage|S|kv|The token usage.
gauge full_token_usage|S|kv|The token usage for full attention layers.
gauge swa_token_usage|S|0|The token usage for SWA layers.
gauge mamba_usage|S|0|The token usage for Mamba layers.
gauge num_used_tokens|S|used|The number of used tokens.
gauge kv_available_tokens|S|available|Number of free token slots in the KV cache pool.
gauge kv_evictable_tokens|S|evictable|Number of evictable (radix-cached) token slots in the KV cache pool.
gauge kv_used_tokens|S|used|Number of actively used token slots in the KV cache pool.
gauge swa_available_tokens|S|0|Number of free token slots in the SWA pool (hybrid-SWA only).
gauge swa_used_tokens|S|0|Number of actively used token slots in the SWA pool.
gauge mamba_used_tokens|S|0|Number of actively used state slots in the mamba SSM pool.
gauge spec_accept_length|S|accept_length|Mean acceptance length of speculative decoding (accepted drafts + bonus token per forward).
gauge spec_accept_rate|S|accept_rate|Speculative acceptance rate (`accepted drafts / proposed drafts` in batch).
gauge spec_cap_length|S|0|Mean DSpark confidence-scheduled verify window per verify step, incl the bonus slot.
gauge spec_block_accept_length|S|0|Mean uncapped full-block accept length per verify step.
gauge spec_num_steps|S|draft_length|Currently active speculative_num_steps.
gauge spec_num_draft_tokens|S|draft_tokens|Currently active speculative_num_draft_tokens.
gauge num_prefill_bootstrap_queue_reqs|S|0|The number of requests in the prefill bootstrap queue.
gauge num_prefill_inflight_queue_reqs|S|0|The number of requests in the prefill inflight queue.
gauge num_decode_prealloc_queue_reqs|S|0|The number of requests in the decode prealloc queue.
gauge num_decode_transfer_queue_reqs|S|0|The number of requests in the decode transfer queue.
gauge utilization|S|0|The utilization.
gauge fwd_occupancy|S|nan|Forward pass GPU occupancy percentage.
gauge new_token_ratio|S|0.31|The new token ratio.
gauge is_cuda_graph|S|1|Whether the batch is using CUDA graph."""
DUMMY = (
    "max_total_num_tokens",
    "weight_memory",
    "kv_cache_memory",
    "page_size",
    "num_pages",
    "context_len",
    "startup_",
)
VLLM = """\
counter spec_decode_num_drafts_total|E|drafts|Number of spec decoding drafts.
counter spec_decode_num_draft_tokens_total|E|drafted|Number of draft tokens.
counter spec_decode_num_accepted_tokens_total|E|accepted|Number of accepted tokens.
counter spec_decode_num_accepted_tokens_per_pos_total|E position|*positions|Accepted tokens per draft position.
counter estimated_flops_per_gpu_total|E|0|Estimated number of floating point operations per GPU.
counter estimated_read_bytes_per_gpu_total|E|0|Estimated number of bytes read from memory per GPU.
counter estimated_write_bytes_per_gpu_total|E|0|Estimated number of bytes written to memory per GPU.
gauge num_requests_running|E|running|Number of requests in model execution batches.
gauge num_requests_waiting|E|waiting|Number of requests waiting to be processed.
gauge num_requests_waiting_by_reason|E reason|capacity:waiting deferred:0|Number of waiting requests by reason.
gauge engine_sleep_state|E sleep_state|awake:1 weights_offloaded:0 discard_all:0|Engine sleep state.
gauge kv_cache_usage_perc|E|kv|KV-cache usage. 1 means 100 percent usage.
counter prefix_cache_queries_total|E|prompt_all|Prefix cache queries, in terms of number of queried tokens.
counter prefix_cache_hits_total|E|cached|Prefix cache hits, in terms of number of cached tokens.
counter external_prefix_cache_queries_total|E|0|External prefix cache queries from KV connector.
counter external_prefix_cache_hits_total|E|0|External prefix cache hits from KV connector.
counter mm_cache_queries_total|E|0|Multi-modal cache queries, in terms of number of queried items.
counter mm_cache_hits_total|E|0|Multi-modal cache hits, in terms of number of cached items.
counter num_preemptions_total|E|0|Cumulative number of preemption from the engine.
counter prompt_tokens_total|E|prompt_all|Number of prefill tokens processed.
counter prompt_tokens_by_source_total|E source|local_compute:prefill local_cache_hit:cached external_kv_transfer:0|By source.
counter prompt_tokens_cached_total|E|cached|Number of cached prompt tokens (local + external).
counter prompt_tokens_cached_by_source_total|E source|device:cached host:0 p2p:0 disk:0|Prefix-cache hit tokens by cache tier.
counter generation_tokens_total|E|decode|Number of generation tokens processed.
counter request_success_total|E finished_reason|stop:finished length:0 abort:0 error:0|Count of successfully processed requests.
counter admission_rejections_total|- reason|max_num_queued_reqs:0 max_num_queued_tokens:0|Rejected admission attempts by reason.
hist request_prompt_tokens|E|prompt_length:token:finished|Number of prefill tokens processed.
hist request_generation_tokens|E|length:token:finished|Number of generation tokens processed.
hist iteration_tokens_total|E|batch:iteration:steps|Histogram of number of tokens per engine_step.
hist request_params_n|E|one:small:finished|Histogram of the n request parameter.
hist time_to_first_token_seconds|E|ttft:time:finished|Histogram of time to first token in seconds.
hist inter_token_latency_seconds|E|step_time:step:drafts|Histogram of inter-token latency in seconds.
hist request_time_per_output_token_seconds|E|tpot:step:finished|Histogram of time_per_output_token_seconds per request.
hist e2e_request_latency_seconds|E|e2e:request:finished|Histogram of e2e request latency in seconds.
hist request_queue_time_seconds|E|queue:request:finished|Histogram of time spent in WAITING phase for request.
hist request_inference_time_seconds|E|e2e:request:finished|Histogram of time spent in RUNNING phase for request.
hist request_prefill_time_seconds|E|ttft:request:finished|Histogram of time spent in PREFILL phase for request.
hist request_decode_time_seconds|E|e2e:request:finished|Histogram of time spent in DECODE phase for request."""

# How a boot goes. What fails ends the process with code 1 at its share of the boot.
STORIES = ("usual", "autotune-missed", "tiling", "out-of-memory", "stock-image")
# Lines of a boot, as GB10 and GB300 systems log them: share of the boot, form, text. Forms: bar, raw, log (with the rank's
# or process's prefix), plain (a time alone), jit (FlashInfer's own logger); in front of a form, who writes it: r: with
# Engram rows from a folder, d: a rank of several, h: such a rank without HTTP, s: one alone, m: autotune missed, k: hit.
SGLANG_BOOT = """\
0.000 r:raw overlay: 11 import hooks armed
0.000 r:raw engram_store installed: Engram rows of layers [1, 14] come from {rows} through libengram_rows.so
0.001 plain server_args=ServerArgs(model_path='{model_path}', served_model_name='{model}', tp_size={ranks}, nnodes={ranks}, node_rank={rank})
0.003 plain Auto-detected DSV4 routed-expert layout: is_fp4_experts=True
0.006 log Init torch distributed begin.
0.011 log Init torch distributed ends. elapsed=2.61 s, mem usage=0.31 GB
0.013 r:log engram layer 1: rank {rank}/{ranks} owns rows [{one}) of 384006168, shard model-00047-of-00048.safetensors, 64 gather threads, 65536 ids per lookup
0.013 r:log engram layer 14: rank {rank}/{ranks} owns rows [{fourteen}) of 384016682, shard model-00048-of-00048.safetensors, 64 gather threads, 65536 ids per lookup
0.014 log Load weight begin. avail mem=111.47 GB
0.015 bar Multi-thread loading shards:   0% Completed | 0/48 [00:00<?, ?it/s]
0.030 bar Multi-thread loading shards:  12% Completed | 6/48 [00:08<00:56,  1.36s/it]
0.050 bar Multi-thread loading shards:  46% Completed | 22/48 [00:29<00:34,  1.34s/it]
0.070 bar Multi-thread loading shards:  77% Completed | 37/48 [00:53<00:16,  1.51s/it]
0.080 bar Multi-thread loading shards:  92% Completed | 44/48 [00:56<00:01,  2.33it/s]
0.084 bar Multi-thread loading shards: 100% Completed | 48/48 [00:56<00:00,  1.18s/it]
0.090 log Finished streaming dequant fp8 wo_a
0.700 log Preparing DSv4 MXFP4 experts for FlashInfer SM120 CUTLASS W4A8 (layer: model.layers.0.mlp.experts)...
0.701 log Preparing DSv4 MXFP4 experts for FlashInfer SM120 CUTLASS W4A8 (layer: model.layers.39.mlp.experts)...
0.702 log Load weight end. elapsed={weights:.2f} s, type=DeepseekV4ForCausalLM, quant=fp8, avail mem=17.47 GB, mem usage=94.00 GB.
0.810 log Draft checkpoint bundles a DSpark head; loading draft arch DeepseekV4ForCausalLMDSpark.
0.810 log Init torch distributed begin.
0.810 log Init torch distributed ends. elapsed=0.02 s, mem usage=0.00 GB
0.812 log Load weight begin. avail mem=17.54 GB
0.813 bar Multi-thread loading shards:   0% Completed | 0/48 [00:00<?, ?it/s]
0.850 bar Multi-thread loading shards:  35% Completed | 17/48 [00:31<02:16,  4.39s/it]
0.900 bar Multi-thread loading shards: 100% Completed | 48/48 [01:06<00:00,  1.38s/it]
0.905 log Load weight end. elapsed={draft:.2f} s, type=DeepseekV4ForCausalLMDSpark, quant=fp8, avail mem=14.74 GB, mem usage=2.80 GB.
0.924 log DSV4 SWA sizing: mode=cap, swa_tokens=13312, request_cap+headroom=13312, prefix_tails=16
0.925 log DSV4 memory calculation: bytes_per_full_token=1670.75, available_bytes={available:.2f} GB, c128_state_fixed=0.00 GB, swa_fixed=0.30 GB, full_token={pool}
0.926 log DSV4 pool sizes: full={pool}, swa=13312, c4={quarter}, c128={sliver}, c4_state=1664, c128_state=0
0.928 log Memory pool end. avail mem=9.90 GB
0.930 log Memory pool end. avail mem=9.90 GB
0.934 m:log FlashInfer autotune: per-rank caches disagree, discarding them and tuning from scratch so all ranks agree on the tactics.
0.934 log Running FlashInfer autotune with cache: /root/.cache/sglang/flashinfer/autotune/0.6.18/sm121/05cc0d96dc7e28b8/rank_tp{rank}_pp0_dp0.json
0.936 m:bar [AutoTuner]: Tuning trtllm::fused_moe::gemm1:  17%|#7        | 1/6 [02:41<13:25, 161.0s/profile]
0.942 m:bar [AutoTuner]: Tuning trtllm::fused_moe::gemm2:  50%|#####     | 3/6 [08:03<08:03, 161.2s/profile]
0.949 log FlashInfer autotune completed.
0.950 log Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=6, bs=[1, 2, 3, 4], avail mem=8.20 GB
0.951 bar Capturing batches (bs=4 avail_mem=7.94 GB):   0%|          | 0/4 [00:00<?, ?it/s]
0.959 bar Capturing batches (bs=3 avail_mem=7.79 GB):  25%|##5       | 1/4 [00:08<00:24,  8.29s/it]
0.964 bar Capturing batches (bs=1 avail_mem=7.69 GB): 100%|##########| 4/4 [00:11<00:00,  2.96s/it]
0.966 log Capture target verify CUDA graph end. elapsed=13.48 s, mem usage=0.58 GB, avail mem=7.62 GB.
0.967 log Capture draft verify CUDA graph begin. backend=full, num_tokens_per_req=5, bs=[1, 2, 3, 4], avail mem=7.67 GB
0.972 log Capture draft verify CUDA graph end. elapsed=4.26 s, mem usage=-0.01 GB, avail mem=7.68 GB.
0.973 log max_total_num_tokens={pool}, chunked_prefill_size=1024, max_prefill_tokens=16384, max_running_requests=24, context_len={context}, available_gpu_mem=7.68 GB
0.975 plain Engine startup timings (s): load_weight={both:.2f}, kv_cache_allocation=6.68, scheduler_e2e={scheduler:.2f}, cuda_graph={{prefill=0.00, decode=0.00, target_verify=13.48, draft_prefill=0.00, draft_decode=4.26, draft_extend=0.00}}, tokenizer_e2e={tokenizer:.2f}
0.980 plain INFO:     Started server process [83]
0.984 plain INFO:     Application startup complete.
0.985 plain INFO:     Uvicorn running on http://0.0.0.0:{port} (Press CTRL+C to quit)
1.000 plain The server is fired up and ready to roll!"""
VLLM_BOOT = """\
0.000 log A version 0.32.0
0.001 log A model   {model_path}
0.010 log A Resolved architecture: DeepseekV41ForCausalLM
0.011 log A Using max model len {context}
0.055 h:log A Launching vLLM (v0.32.0) headless multiproc executor, with head node address 192.0.2.10:29541 for torch.distributed process group.
0.060 log E Initializing a V1 LLM engine (v0.32.0) with config: model='{model_path}'
0.064 d:log W world_size={ranks} rank={rank} local_rank=0 distributed_init_method=tcp://192.0.2.10:29541 backend=nccl
0.078 d:log W rank {rank} in world size {ranks} is assigned as DP rank 0, PP rank 0, PCP rank 0, TP rank {rank}, ETP rank {rank}, EP rank {rank}, EPLB rank N/A
0.080 log W Loading model from scratch...
0.082 r:log W Engram layer 1 rows [{heads_one}) read from node-local {rows}
0.082 r:log W Engram DISK mode: layer 1 rows [{heads_one}) read from model-00047-of-00048.safetensors (off=24576145048) and model-00047-of-00048.safetensors (off=99073584184); 32 threads, chunk 16
0.084 r:log W Engram layer 14 rows [{heads_fourteen}) read from node-local {rows}
0.084 r:log W Engram DISK mode: layer 14 rows [{heads_fourteen}) read from model-00048-of-00048.safetensors (off=24576816248) and model-00048-of-00048.safetensors (off=99076292384); 32 threads, chunk 16
0.090 log W Filesystem type for checkpoints: EXT4. Checkpoint size: 475.26 GiB. Available RAM: 464.00 GiB.
0.091 bar Loading safetensors checkpoint shards:   0% Completed | 0/48 [00:00<?, ?it/s]
0.150 bar Loading safetensors checkpoint shards:  21% Completed | 10/48 [00:31<01:58,  3.11s/it]
0.300 bar Loading safetensors checkpoint shards:  60% Completed | 29/48 [01:30<00:59,  3.12s/it]
0.410 bar Loading safetensors checkpoint shards:  98% Completed | 47/48 [02:28<00:03,  3.15s/it]
0.420 bar Loading safetensors checkpoint shards: 100% Completed | 48/48 [02:31<00:00,  3.15s/it]
0.430 log W Loading weights took {took:.2f} seconds
0.560 s:raw (EngineCore pid=362) PIN_HOT rehome done layers=40 HBM_expert=206.61GiB pinned_expert=62.33GiB hbm_free=23.12GiB host_avail=19.48GiB
0.570 s:log W Total CPU offloaded parameters: 61.17
0.580 log W Model loading took {held} GiB memory and {loading:.6f} seconds
0.640 k:jit [Autotuner]: Loaded 189 configs from /root/.cache/vllm/flashinfer_autotune_cache/0.6.18/103a/5b1c8f0e7d2a46939c0de1f4a87b35621d90ce48ab7f36e25c1d8804fe9a7b63/autotune_configs.json
0.650 log W Autotuning process starts ...
0.660 log W Autotuning process ends
0.662 jit [Autotuner]: Saved 189 configs to /root/.cache/vllm/flashinfer_autotune_cache/0.6.18/103a/5b1c8f0e7d2a46939c0de1f4a87b35621d90ce48ab7f36e25c1d8804fe9a7b63/autotune_configs.json
0.700 log W Available KV cache memory: 4.89 GiB
0.701 log E GPU KV cache size: {pool:,} tokens, Maximum concurrency for {context:,} tokens per request: {concurrency:.2f}x
0.710 bar Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):   0%|          | 0/15 [00:00<?, ?it/s]
0.798 bar Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%|##########| 15/15 [00:34<00:00,  2.26s/it]
0.800 log W Graph capturing finished in 34 secs, took 1.52 GiB
0.900 log W Graph capturing finished in 21 secs, took 1.08 GiB
0.940 log E init engine (profile, create kv cache, warmup model) took {warm:.2f} s
0.990 log A Starting vLLM server on http://0.0.0.0:{port}
1.000 raw INFO:     Application startup complete."""
AUTOTUNE = {"sglang": (0.935, 0.948), "vllm": (0.655, 0.658)}
"""Shares of a usual boot between which a missed autotune spends nearly all of its time."""
MISSED = 0.12
"""Share of such a boot that is left for everything else."""
FAILURES = {
    "tiling": (
        0.0135,
        """\
Traceback (most recent call last):
  File "/opt/spark-overlay/engram_store.py", line 418, in install
    check_tiling(layer, ranges, rows)
RuntimeError: engram layer 1: the TP ranks' row ranges do not tile [0, 384006168) exactly (gap, overlap or missing rows): rank 0: [0, 96001542), rank 1: [96001542, 192003084), rank 2: [192001740, 288003654), rank 3: [288004626, 384006168)""",
    ),
    "out-of-memory": (
        0.5,
        """\
Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl-workspace/sglang/python/sglang/srt/models/deepseek_v4.py", line 2204, in post_load_weights
    self.w13_weight = torch.empty_like(packed)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.66 GiB. GPU 0 has a total capacity of 119.70 GiB of which 2.31 GiB is free.""",
    ),
}
HEADS = {
    "one": (0, 96000564, 192001740, 288003654, 384006168),
    "fourteen": (0, 96003054, 192007016, 288011564, 384016682),
}
"""Bounds of vLLM's split of the Engram tables over four ranks."""


class Meter:
    """A counter that grows by rate x elapsed; the rate may change, the count never jumps."""

    def __init__(self, total: float, rate: float, since: float) -> None:
        self.total, self.rate, self.since = total, rate, since

    def at(self, now: float) -> float:
        """The count at monotonic time `now`."""
        return self.total + self.rate * max(0.0, now - self.since)

    def turn(self, now: float, rate: float) -> None:
        """From `now` on, grow by `rate` per second."""
        self.total, self.rate, self.since = self.at(now), rate, max(now, self.since)


class Answer(NamedTuple):
    """One HTTP answer; `claimed` is a Content-Length other than the body's own."""

    status: int
    kind: str
    body: bytes
    claimed: int | None = None


class Engine:
    """The simulated engine: what it would say, at any moment, about itself."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.port = options.port
        self.born = time.monotonic()
        self.ready_at = self.born + max(0.0, options.boot - options.age)
        self.opens_at = self.born + max(0.0, options.boot * (0.985 if options.kind == "sglang" else 1.0) - options.age)
        self.started = time.time() - options.age
        self.fault: dict[str, Any] = {"fault": "none"}
        self.changed = threading.Condition()
        served = max(0.0, options.age - options.boot)
        self.decode = Meter(served * options.tps, options.tps, self.ready_at)
        self.prefill = Meter(served * options.prefill_tps, options.prefill_tps, self.ready_at)

    @property
    def booted(self) -> bool:
        """True once the boot is over."""
        return bool(time.monotonic() >= self.ready_at)

    def set_fault(self, wanted: dict[str, Any]) -> None:
        """Switch a fault on, or all of them off. Raises ValueError for an unknown one."""
        name = wanted.get("fault", "none")
        if name not in FAULTS:
            raise ValueError(f"unknown fault {name!r}; known: {', '.join(FAULTS)}")
        if name == "exit":
            os._exit(int(wanted.get("code", 1)))
        now = time.monotonic()
        with self.changed:
            if name == "reset":
                since = max(now, self.ready_at)
                self.decode, self.prefill = Meter(0, self.decode.rate, since), Meter(0, self.prefill.rate, since)
                self.started = time.time()
                wanted = {"fault": "none"}
            self.fault = wanted
            still = name in FROZEN or name == "idle"
            self.decode.turn(now, 0.0 if still or name == "prefill-only" else self.options.tps)
            busy = max(self.options.prefill_tps, 1800.0) if name == "prefill-only" else self.options.prefill_tps
            self.prefill.turn(now, 0.0 if still else busy)
            self.changed.notify_all()

    def values(self) -> dict[str, float]:
        """Every number that the series tables name, now."""
        o, now = self.options, time.monotonic()
        idle = self.fault["fault"] == "idle" or not self.booted
        decode, prefill = self.decode.at(now), self.prefill.at(now)
        length = 1.0 + o.accepted
        drafts = decode / length
        finished = float(int(decode / o.length))
        used = 0.0 if idle else o.kv * o.pool
        evictable = float(int((o.pool - used) * 0.35))
        return {
            "decode": decode,
            "prefill": prefill,
            "cached": prefill * o.hit_rate / (1 - o.hit_rate),
            "prompt_all": prefill / (1 - o.hit_rate),
            "drafts": drafts,
            "drafted": drafts * o.drafts,
            "accepted": drafts * o.accepted,
            "steps": drafts / max(1, o.running),
            "finished": finished,
            "generated_finished": finished * o.length,
            "drafts_finished": float(int(finished * o.length / length)),
            "prompt_finished": finished * 4000,
            "running": 0.0 if idle else float(o.running),
            "waiting": 0.0 if idle else float(o.waiting),
            "tps": 0.0 if idle else self.decode.rate if self.fault["fault"] not in FROZEN else o.tps,
            "pool": float(o.pool),
            "used": used,
            "evictable": evictable,
            "available": o.pool - used - evictable,
            "kv": used / o.pool,
            "hit_rate": o.hit_rate,
            "context": float(o.context),
            "pages": float(o.pool // 64),
            "accept_length": length if o.drafts else 0.0,
            "accept_rate": o.accepted / o.drafts if o.drafts else 0.0,
            "draft_length": float(o.drafts),
            "draft_tokens": float(o.drafts + 1 if o.drafts else 0),
            "ttft": o.ttft,
            "tpot": max(1, o.running) / max(o.tps, 0.001),
            "step_time": length * max(1, o.running) / max(o.tps, 0.001),
            "e2e": o.ttft + o.length * max(1, o.running) / max(o.tps, 0.001),
            "length": float(o.length),
            "prompt_length": 4000.0,
            "uncached_length": 4000.0 * (1 - o.hit_rate),
            "queue": 0.02,
            "batch": length * max(1, o.running),
            "boot": o.boot_shown,
            "one": 1.0,
            "idle_seconds": 0.0,
        }

    def metrics(self, kind: str) -> bytes:
        """The exposition text of engine `kind` with this engine's figures."""
        lines: list[str] = []
        if kind == "vllm":
            lines += ["# TYPE process_start_time_seconds gauge", f"process_start_time_seconds {number(self.started)}"]
            lines += ["# TYPE process_resident_memory_bytes gauge", "process_resident_memory_bytes 6.98507264e+08"]
        values = self.values()
        for row in (SGLANG if kind == "sglang" else VLLM).splitlines():
            kind_and_name, scope, entries, text = row.split("|", 3)
            family, name = kind_and_name.split(" ")
            if self.options.rank and not name.startswith(DUMMY):
                continue
            if name.startswith("spec_") and not self.options.drafts:
                continue
            lines += self._family(kind, family, name, scope, entries, text, values)
        if kind == "vllm":
            lines += self._cache_config()
        return ("\n".join(lines) + "\n").encode()

    def _family(
        self, kind: str, family: str, name: str, scope: str, entries: str, text: str, values: dict[str, float]
    ) -> Iterator[str]:
        full = f"{kind}:{name}"
        scope, _, label = scope.partition(" ")
        labels = self._labels(scope)
        yield f"# HELP {full} {text}"
        yield f"# TYPE {full} {'histogram' if family == 'hist' else family}"
        if family == "hist":
            median, bounds, count = entries.split(":")
            table = TIME_BOUNDS[kind] if bounds == "time" else STEP_BOUNDS[kind] if bounds == "step" else BOUNDS[bounds]
            yield from histogram(full, labels, values[median], table, int(values[count]))
        elif entries == "*positions":
            for position, share in enumerate(by_position(self.options.drafts, self.options.accepted)):
                yield sample(full, {**labels, "position": str(position)}, share * values["drafts"])
        else:
            for entry in entries.split(" "):
                word, _, key = entry.rpartition(":")
                value = values[key] if key in values else float(key)
                yield sample(full, {**labels, label: word} if label else labels, value)
        if kind == "vllm" and family in ("counter", "hist"):
            created = full.removesuffix("_total") + "_created" if family == "counter" else full + "_created"
            yield f"# TYPE {created} gauge"
            yield sample(created, labels, self.started)

    def _labels(self, scope: str) -> dict[str, str]:
        model, rank = self.options.model, str(self.options.rank)
        if scope == "-":
            return {}
        if scope == "E":
            return {"engine": "0", "model_name": model}
        labels = {"engine_type": "unified", "model_name": model}
        if scope == "R":
            labels["is_streaming"] = "true"
        if scope in ("S", "P"):
            labels.update(moe_ep_rank=rank, pp_rank="0", tp_rank=rank)
        if scope == "P":
            labels["pid"] = str(os.getpid())
        return labels

    def _cache_config(self) -> Iterator[str]:
        o = self.options
        # block_size 4 is what DeepSeek-V4 lanes really say: blocks x block_size is not the pool there
        labels = {
            "engine": "0",
            "block_size": "4",
            "cache_dtype": "fp8_ds_mla",
            "enable_prefix_caching": "True",
            "gpu_memory_utilization": "0.97",
            "kv_cache_max_concurrency": f"{o.pool / o.context:.2f}",
            "kv_cache_size_tokens": str(o.pool),
            "num_cpu_blocks": "None",
            "num_gpu_blocks": str(o.pool // 256),
            "num_gpu_blocks_override": "None",
        }
        yield "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig"
        yield "# TYPE vllm:cache_config_info gauge"
        yield sample("vllm:cache_config_info", labels, 1.0)

    def answer(self, path: str) -> Answer:
        """The answer to GET `path`, faults included."""
        fault = self.fault["fault"]
        if path == "/__truth":
            return Answer(200, "application/json", json.dumps(self.truth()).encode())
        if fault == "html":
            return Answer(200, "text/html; charset=utf-8", HTML.encode())
        if path in ("/health", "/health_generate", "/ping"):
            return self._health(fault)
        if path in ("/metrics", "/metrics/"):
            return self._metrics(fault)
        if path == "/ready" and self.options.kind == "sglang" and not self.options.rank:
            return Answer(503 if fault == "503" or not self.booted else 200, "", b"")
        document = self._documents().get(path)
        if document is None:
            return Answer(404, "application/json", b'{"detail":"Not Found"}')
        if fault == "503":
            return Answer(503, "application/json", b'{"error":"EngineDeadError"}')
        return Answer(200, "application/json", json.dumps(document()).encode())

    def _health(self, fault: str) -> Answer:
        if self.options.kind == "sglang" and not self.options.rank:
            if not self.booted:
                return Answer(503, "", b"")
            self.pause(1.0)  # its health is a real generation, polled once a second
        return Answer(503 if fault == "503" else 200, "", b"")

    def _metrics(self, fault: str) -> Answer:
        kind, plain = self.options.kind, "text/plain; version=0.0.4; charset=utf-8"
        if fault == "metrics-off":
            return Answer(404, "application/json", b'{"detail":"Not Found"}')
        if fault == "empty":
            return Answer(200, plain, b"")
        if fault == "other-engine":
            return Answer(200, plain, self.metrics("vllm" if kind == "sglang" else "sglang"))
        body = self.metrics(kind)
        if fault != "truncated":
            return Answer(200, plain, body)
        mark = b'mode="decode"' if kind == "sglang" else b"vllm:generation_tokens_total{"
        cut = body.index(b"} ", body.index(mark)) + 4  # two digits into the value
        return Answer(200, plain, body[:cut], len(body))

    def _documents(self) -> dict[str, Callable[[], object]]:
        if self.options.rank:
            return {}
        common = {"/v1/models": self._models}
        if self.options.kind == "vllm":
            return {
                **common,
                "/version": lambda: {"version": self.options.version},
                "/load": lambda: {"server_load": 0},
            }
        return {**common, "/v1/loads": self._loads, "/server_info": self._server_info, "/model_info": self._server_info}

    def _models(self) -> object:
        o = self.options
        card = {
            "id": o.model,
            "object": "model",
            "created": int(self.started),
            "owned_by": o.kind,
            "root": o.model_path,
        }
        return {"object": "list", "data": [{**card, "parent": None, "max_model_len": o.context}]}

    def _loads(self) -> object:
        v, now = self.values(), time.time()
        load = {
            "timestamp": self.fault.get("since", now) if self.fault["fault"] in FROZEN else now,
            "dp_rank": 0,
            "num_running_reqs": int(v["running"]),
            "num_waiting_reqs": int(v["waiting"]),
            "num_used_tokens": int(v["used"]),
            "max_total_num_tokens": int(v["pool"]),
            "token_usage": v["kv"],
            "gen_throughput": v["tps"],
            "total_prefill_uncached_tokens": int(v["prefill"]),
            "speculative": {"accept_length": v["accept_length"], "accept_rate": v["accept_rate"]},
        }
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(now))
        return {"timestamp": stamp, "version": self.options.version, "loads": [load]}

    def _server_info(self) -> object:
        o, v = self.options, self.values()
        state = {"last_gen_throughput": v["tps"], "avg_spec_accept_length": v["accept_length"]}
        info = {
            "model_path": o.model_path,
            "served_model_name": o.model,
            "tp_size": 4,
            "nnodes": 4,
            "node_rank": o.rank,
        }
        info |= {"port": self.port, "enable_metrics": True, "max_total_num_tokens": o.pool, "version": o.version}
        return {**info, "context_length": o.context, "internal_states": [state]}

    def truth(self) -> object:
        """What a reader of the series must find, exactly."""
        keys = ("decode", "prefill", "running", "waiting", "pool", "kv", "accept_length", "accept_rate", "finished")
        values = self.values()
        figures = {key: values[key] for key in keys}
        return {
            "now": time.monotonic(),
            "rate": self.decode.rate,
            "prefill_rate": self.prefill.rate,
            **self.fault,
            **figures,
        }

    def pause(self, seconds: float) -> None:
        """Wait, but not past a change of fault."""
        with self.changed:
            self.changed.wait(seconds)


def sample(name: str, labels: dict[str, str], value: float) -> str:
    """One line of exposition text."""
    inside = ",".join(f'{key}="{labels[key]}"' for key in sorted(labels))
    return f"{name}{{{inside}}} {number(value)}" if inside else f"{name} {number(value)}"


def number(value: float) -> str:
    """A float as prometheus_client writes it: exponents from a million up."""
    text = repr(float(value))
    dot = text.find(".")
    if value > 0 and dot > 6 and "e" not in text:
        mantissa = f"{text[0]}.{text[1:dot]}{text[dot + 1 :]}".rstrip("0").rstrip(".")
        return f"{mantissa}e+{dot - 1:02d}"
    return "NaN" if value != value else text


def histogram(name: str, labels: dict[str, str], median: float, bounds: str, count: int) -> Iterator[str]:
    """Cumulative buckets of a log-logistic distribution (shape 3) with the given median; the mean is 1.2092 x median."""
    for word in bounds.split(" "):
        bound = float(word)
        share = 1 / (1 + (median / bound) ** 3)
        yield sample(f"{name}_bucket", {**labels, "le": number(bound)}, float(int(count * share)))
    yield sample(f"{name}_bucket", {**labels, "le": "+Inf"}, float(count))
    yield sample(f"{name}_count", labels, float(count))
    yield sample(f"{name}_sum", labels, count * median * 1.2092)


def by_position(drafts: int, accepted: float) -> list[float]:
    """Acceptance per draft position q, q^2, ... with the sum `accepted`."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(middle**i for i in range(1, drafts + 1)) < accepted else (low, middle)
    return [low**i for i in range(1, drafts + 1)]


class Handler(BaseHTTPRequestHandler):
    """HTTP/1.1 with kept-alive connections."""

    protocol_version = "HTTP/1.1"
    server_version = "uvicorn"
    timeout = 120
    engine: Engine
    token = b""
    """What an order over HTTP must show; without one there are no such orders."""

    def do_GET(self) -> None:
        """Answer one request under the fault in force."""
        fault = self.engine.fault
        if fault["fault"] == "silent" and not self.path.startswith("/__"):
            while self.engine.fault["fault"] == "silent":
                self.engine.pause(5.0)
            self.close_connection = True
            return
        if fault["fault"] == "slow":
            self.engine.pause(float(fault.get("seconds", 3.0)))
        self.send(self.engine.answer(self.path.partition("?")[0]))

    def do_POST(self) -> None:
        """Switch a fault, for who has the token."""
        length = self.headers.get("Content-Length") or "0"
        shown = (self.headers.get(TOKEN_HEADER) or "").encode()
        if not length.isdecimal() or int(length) > MOST_ORDER:
            self.close_connection = True
            return self.send(Answer(413, "application/json", b'{"detail":"too large"}'))
        body = self.rfile.read(int(length))
        if self.path != "/__fault" or not self.token:
            return self.send(Answer(404, "application/json", b'{"detail":"Not Found"}'))
        if not hmac.compare_digest(shown, self.token):
            return self.send(Answer(403, "application/json", b'{"detail":"wrong token"}'))
        try:
            self.engine.set_fault(order(body))
        except ValueError as error:
            return self.send(Answer(400, "application/json", json.dumps({"detail": str(error)}).encode()))
        return self.send(Answer(200, "application/json", json.dumps(self.engine.truth()).encode()))

    def send(self, answer: Answer) -> None:
        """One write for head and body, so that no small packet waits for an acknowledgement."""
        wire = self.wfile
        self.send_response(answer.status)
        if answer.kind:
            self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(answer.claimed if answer.claimed is not None else len(answer.body)))
        if answer.claimed is not None:
            self.close_connection = True
        self.wfile = io.BytesIO()
        self.end_headers()
        head, self.wfile = self.wfile.getvalue(), wire
        wire.write(head + answer.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Access log, in uvicorn's form."""
        if self.engine.options.access_log:
            say(f'INFO:     {self.client_address[0]}:{self.client_address[1]} - "{self.requestline}" {args[1]}')


class Server(ThreadingHTTPServer):
    """Threads that do not outlive the process; quiet about clients that hang up."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of the engine's."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def say(line: str) -> None:
    """One line into the container's log; engines write theirs to stderr, and a bar ends its line only when it is full."""
    unfinished = line.startswith("\r") and "100%" not in line
    sys.stderr.write(line + ("" if unfinished else "\n"))
    sys.stderr.flush()


def stamped(o: argparse.Namespace, line: str, wall: float, pid: int) -> str:
    """A log line with the prefix that its engine writes (SGLang: UTC; vLLM: no year, no zone)."""
    moment = time.gmtime(wall)
    if o.kind == "sglang":
        return f"[{time.strftime('%Y-%m-%d %H:%M:%S', moment)} TP{o.rank} EP{o.rank}] {line}"
    worker = f"Worker_TP{o.rank}" if o.ranks > 1 else "EngineCore"
    who = {"A": "APIServer", "E": "EngineCore", "W": worker}[line[0]]
    return f"({who} pid={pid}) INFO {time.strftime('%m-%d %H:%M:%S', moment)} [core.py:402] {line[2:]}"


def formed(o: argparse.Namespace, form: str, line: str, wall: float, pid: int) -> str:
    """A line in one of the forms of the boot tables."""
    if form == "log":
        return stamped(o, line, wall, pid)
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(wall))
    if form == "plain":
        return f"[{stamp}] {line}"
    if form == "jit":
        return f"(EngineCore pid={pid}) {stamp},{int(wall % 1 * 1000):03d} - INFO - autotuner.py:2789 - flashinfer.jit: {line}"
    return "\r" + line if form == "bar" else line


def boot_fields(o: argparse.Namespace) -> dict[str, object]:
    """What stands in the braces of the boot tables."""
    shown = o.boot_shown * (MISSED if o.story == "autotune-missed" else 1.0)
    weights, draft = 0.688 * shown, 0.093 * shown
    fields: dict[str, object] = {"model": o.model, "model_path": o.model_path, "rank": o.rank, "ranks": o.ranks}
    fields |= {"rows": o.rows, "context": o.context, "port": o.port_shown or o.port}
    fields |= {"pool": o.pool, "quarter": o.pool // 4, "sliver": o.pool // 128, "concurrency": o.pool / o.context}
    fields |= {"available": o.pool * 1670.75 / 1e9, "weights": weights, "draft": draft, "both": weights + draft}
    fields |= {"scheduler": 0.967 * o.boot_shown, "tokenizer": 0.974 * o.boot_shown, "warm": 0.3 * o.boot_shown}
    fields |= {"took": 0.335 * shown, "loading": 0.49 * shown, "held": "206.61" if o.ranks == 1 else "81.58"}
    for name, rows in (("one", 384006168), ("fourteen", 384016682)):
        fields[name] = f"{rows * o.rank // o.ranks}, {rows * (o.rank + 1) // o.ranks}"
        bounds = HEADS[name]
        fields[f"heads_{name}"] = f"{bounds[min(o.rank, 3)]}, {bounds[min(o.rank, 3) + 1]}"
    return fields


def boot_rows(o: argparse.Namespace) -> Iterator[tuple[float, str, str]]:
    """Share of the boot, form and text of each line that this engine writes in its story."""
    missed = o.story == "autotune-missed"
    written = {"r": bool(o.rows) and o.story != "stock-image", "d": o.ranks > 1, "h": o.ranks > 1 and o.rank > 0}
    written |= {"s": o.ranks == 1, "m": missed, "k": not missed}
    fails, words = FAILURES.get(o.story, (2.0, ""))
    for row in (SGLANG_BOOT if o.kind == "sglang" else VLLM_BOOT).splitlines():
        text, form, line = row.split(" ", 2)
        share = float(text)
        if share >= fails:
            break
        who, _, form = form.rpartition(":")
        if missed:
            share = _later(share, *AUTOTUNE[o.kind])
        if not who or written[who]:
            yield share, form, line
    for line in words.splitlines():
        yield fails, "plain" if line.startswith(("Scheduler", "Traceback")) else "raw", line


def _later(share: float, first: float, last: float) -> float:
    """Where a usual boot's share comes in one that tunes anew between `first` and `last`."""
    if share <= first:
        return share * MISSED
    if share >= last:
        return 1 - (1 - share) * MISSED
    left = MISSED * first, 1 - MISSED * (1 - last)
    return left[0] + (left[1] - left[0]) * (share - first) / (last - first)


def boot_lines(o: argparse.Namespace, began: float, pid: int) -> Iterator[tuple[float, str]]:
    """The log of a boot of `o.boot` seconds that began at Unix time `began`: seconds into it, and the line."""
    fields = boot_fields(o)
    for share, form, text in boot_rows(o):
        if o.rank and share >= 0.98 and o.story not in FAILURES:
            break
        into = share * o.boot
        yield into, formed(o, form, text.format(**fields), began + into, pid)


def boot_log(engine: Engine) -> None:
    """The lines of a boot, each in its time; what `--age` skips comes at once, and nothing if all of it is past."""
    o = engine.options
    if o.age and o.age >= o.boot:
        return
    for into, line in boot_lines(o, engine.started, os.getpid()):
        time.sleep(max(0.0, engine.born + into - o.age - time.monotonic()))
        say(line)
    if o.story in FAILURES:
        os._exit(1)


def work_log(engine: Engine) -> None:
    """A line every `--log-every` seconds while there is something to tell."""
    o = engine.options
    time.sleep(max(0.0, engine.ready_at - time.monotonic()))
    while True:
        time.sleep(o.log_every)
        v, fault = engine.values(), engine.fault["fault"]
        if o.kind == "sglang":
            if o.rank == 0 and v["running"] and fault not in FROZEN and engine.decode.rate:
                say(stamped(o, decode_line(v), time.time(), os.getpid()))
        elif v["running"]:
            line = throughput_line(v, engine.decode.rate, engine.prefill.rate)
            say(stamped(o, line, time.time(), os.getpid()))


def decode_line(v: dict[str, float]) -> str:
    """SGLang's line of a decode batch."""
    return (
        f"Decode batch, #running-req: {v['running']:.0f}, #full token: {v['used']:.0f}, full token usage: {v['kv']:.2f}, "
        f"accept len: {v['accept_length']:.2f}, accept rate: {v['accept_rate']:.2f}, cuda graph: True, "
        f"gen throughput (token/s): {v['tps']:.2f}, #queue-req: {v['waiting']:.0f}"
    )


def throughput_line(v: dict[str, float], decode: float, prefill: float) -> str:
    """vLLM's line of the last ten seconds."""
    return (
        f"A Engine 000: Avg prompt throughput: {prefill:.1f} tokens/s, Avg generation throughput: {decode:.1f} tokens/s, "
        f"Running: {v['running']:.0f} reqs, Waiting: {v['waiting']:.0f} reqs, GPU KV cache usage: {100 * v['kv']:.1f}%, "
        f"Prefix cache hit rate: {100 * v['hit_rate']:.1f}%"
    )


def order(text: str | bytes) -> dict[str, Any]:
    """A fault and its options out of JSON. Raises ValueError."""
    wanted = json.loads(text)
    if not isinstance(wanted, dict):
        raise ValueError('an object such as {"fault": "hang"} is wanted')
    return {**wanted, "since": time.time()}


def obey(engine: Engine) -> None:
    """Faults as JSON lines on stdin; the end of stdin is the end of the engine."""
    for line in sys.stdin:
        try:
            engine.set_fault(order(line))
        except ValueError as error:
            say(f"control: {error}")
    os._exit(0)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="A stand-in inference engine with a known truth.")
    parser.add_argument("--kind", choices=("sglang", "vllm"), default="sglang")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-shown", type=int, default=0, help="the port that the log states")
    parser.add_argument("--announce-fd", type=int, default=-1, help="write the real port there once it listens")
    parser.add_argument("--control", action="store_true", help="take faults from stdin; end with it")
    parser.add_argument("--model", default="deepseek-v4.1-flash")
    parser.add_argument("--model-path", default="/model")
    parser.add_argument("--version", default="", help="default: 0.5.23 (SGLang), 0.32.0 (vLLM)")
    parser.add_argument("--rank", type=int, default=0, help="1 and up: the dummy server of a worker rank")
    parser.add_argument("--tps", type=float, default=66.3, help="decode tokens a second, all requests together")
    parser.add_argument("--prefill-tps", type=float, default=0.0, help="computed prompt tokens a second")
    parser.add_argument("--pool", type=int, default=6198016, help="KV pool, tokens")
    parser.add_argument("--kv", type=float, default=0.4375, help="used share of the pool, 0..1")
    parser.add_argument("--running", type=int, default=3)
    parser.add_argument("--waiting", type=int, default=0)
    parser.add_argument("--context", type=int, default=524288)
    parser.add_argument("--drafts", type=int, default=5, help="draft tokens a step; 0: no speculation")
    parser.add_argument("--accepted", type=float, default=1.75, help="accepted drafts a step, bonus not counted")
    parser.add_argument("--hit-rate", type=float, default=0.41, help="prefix cache hits, 0..1")
    parser.add_argument("--ttft", type=float, default=1.2, help="median time to first token, s")
    parser.add_argument("--length", type=int, default=900, help="tokens a request generates")
    parser.add_argument("--boot", type=float, default=0.0, help="seconds from start to ready")
    parser.add_argument("--boot-shown", type=float, default=575.0, help="boot seconds that texts and series state")
    parser.add_argument("--age", type=float, default=0.0, help="seconds that the engine has been up at start")
    parser.add_argument("--story", choices=STORIES, default="usual", help="how a boot goes")
    parser.add_argument("--rows", default="", help="folder of the Engram rows that the log names")
    parser.add_argument("--ranks", type=int, default=1, help="ranks of the lane")
    parser.add_argument("--log-every", type=float, default=2.0, help="seconds between work lines")
    parser.add_argument("--access-log", action="store_true")
    options = parser.parse_args(arguments)
    options.version = options.version or {"sglang": "0.5.23", "vllm": "0.32.0"}[options.kind]
    return options


def main() -> None:
    """Boot, listen, answer until told to end."""
    options = parse()
    token = os.environ.pop(TOKEN_VARIABLE, "").encode()
    engine = Engine(options)

    def end(number: int, frame: FrameType | None) -> None:
        os._exit(0)  # engines drain nothing by default; a stop is quick

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    for work in (boot_log, work_log, *((obey,) if options.control else ())):
        threading.Thread(target=work, args=(engine,), daemon=True).start()
    time.sleep(max(0.0, engine.opens_at - time.monotonic()))
    server = Server((options.host, options.port), type("Bound", (Handler,), {"engine": engine, "token": token}))
    engine.port = server.server_address[1]
    if options.announce_fd >= 0:
        with os.fdopen(options.announce_fd, "w") as announce:
            announce.write(f"{engine.port}\n")
    server.serve_forever(poll_interval=3600)


if __name__ == "__main__":
    main()
