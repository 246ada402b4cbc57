"""Tables and views of the results store, and its version."""

from __future__ import annotations

SCHEMA_VERSION = 1

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE operators (
    op_id TEXT NOT NULL,
    folder_digest TEXT NOT NULL,
    op_type TEXT NOT NULL,
    level INTEGER NOT NULL,
    category TEXT NOT NULL,
    cases INTEGER NOT NULL,
    PRIMARY KEY (op_id, folder_digest)
) WITHOUT ROWID;

CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    op_id TEXT NOT NULL,
    folder_digest TEXT NOT NULL,
    baseline_digest TEXT NOT NULL,
    method TEXT NOT NULL,
    variant TEXT NOT NULL,
    model TEXT NOT NULL,
    seed INTEGER NOT NULL,
    budget INTEGER NOT NULL,
    chip TEXT NOT NULL,
    protocol_digest TEXT NOT NULL,
    settings TEXT NOT NULL,
    steps INTEGER NOT NULL,
    evaluations INTEGER NOT NULL,
    baseline_latency_us REAL,
    best_latency_us REAL,
    best_digest TEXT,
    stop_reason TEXT,
    message TEXT NOT NULL,
    last_digest TEXT NOT NULL,
    source TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX runs_by_operator ON runs (op_id, variant, seed);

CREATE TABLE evaluations (
    run_id TEXT NOT NULL REFERENCES runs,
    idx INTEGER NOT NULL,
    candidate_digest TEXT NOT NULL,
    kind TEXT NOT NULL,
    stage TEXT,
    status TEXT NOT NULL,
    latency_us REAL,
    charged INTEGER NOT NULL,
    spent_evaluations INTEGER NOT NULL,
    improved INTEGER NOT NULL,
    best_latency_us REAL,
    duplicate_of INTEGER,
    usable INTEGER NOT NULL,
    model_calls INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    usd REAL NOT NULL,
    cached INTEGER NOT NULL,
    device_seconds REAL NOT NULL,
    queue_s REAL NOT NULL,
    build_s REAL NOT NULL,
    run_s REAL NOT NULL,
    verify_s REAL NOT NULL,
    price_s REAL NOT NULL,
    total_s REAL NOT NULL,
    host TEXT,
    backend TEXT,
    toolchain_digest TEXT,
    sandbox TEXT,
    chain_digest TEXT NOT NULL,
    origin TEXT NOT NULL,
    detail BLOB,
    PRIMARY KEY (run_id, idx)
);

CREATE TABLE sources (
    baseline_digest TEXT NOT NULL,
    candidate_digest TEXT NOT NULL,
    files BLOB NOT NULL,
    PRIMARY KEY (baseline_digest, candidate_digest)
);

CREATE TABLE sessions (
    run_id TEXT NOT NULL REFERENCES runs,
    session_digest TEXT NOT NULL,
    started_at TEXT NOT NULL,
    host TEXT NOT NULL,
    code_digest TEXT NOT NULL,
    prompts_digest TEXT NOT NULL,
    packages TEXT NOT NULL,
    command TEXT NOT NULL,
    PRIMARY KEY (run_id, session_digest)
) WITHOUT ROWID;
"""

VIEWS = """
CREATE VIEW incumbents AS
    SELECT run_id, idx, spent_evaluations, candidate_digest, latency_us, kind, stage
    FROM evaluations WHERE improved;

CREATE VIEW statuses AS
    SELECT run_id, status, COUNT(*) AS evaluations
    FROM evaluations WHERE idx > 0 GROUP BY run_id, status;

CREATE VIEW costs AS
    SELECT run_id,
        SUM(charged) AS evaluations,
        SUM(cached) AS known,
        SUM(device_seconds) AS device_seconds,
        SUM(CASE WHEN cached THEN 0 ELSE total_s - queue_s END) AS evaluation_seconds,
        SUM(queue_s) AS queue_seconds,
        SUM(model_calls) AS model_calls,
        SUM(prompt_tokens) AS prompt_tokens,
        SUM(completion_tokens) AS completion_tokens,
        SUM(usd) AS usd
    FROM evaluations GROUP BY run_id;

CREATE VIEW provenance AS
    SELECT run_id,
        COUNT(DISTINCT host) AS hosts,
        COUNT(DISTINCT toolchain_digest) AS toolchains,
        MIN(toolchain_digest) AS toolchain_digest,
        MIN(backend) AS backend,
        MIN(sandbox) AS sandbox
    FROM evaluations GROUP BY run_id;
"""
