//! Statements that workers run by the engine Ballista: each stage keeps its rows in files of the workers that ran it, and the statement
//! has no rows before its last stage has ended, so that it can begin anew without a worker that is lost.
//!
//! ```text
//! coordinator (`--worker-engine ballista`)                        worker, one of several
//! plan ─► scans cut into shares ─► Ballista's scheduler ── Run ──► secret ─► directory ─► snapshot ─► bound and planned
//!             (its own threads)     │     ▲   tasks ─────────────► decoded on the parts of that plan ─► rows in files
//!                                   │     └── how they ended ◄───  KeptRows: files of other workers ◄─ Fetch ─► theirs
//! rows ◄─ Fetch ◄───────────────────┘
//! ```
//!
//! Of Ballista the scheduler, the division into stages, and what writes and reads the files are used. Its servers are not: they
//! would ask nobody for a secret, and workers would have to reach the coordinator. One stream from the coordinator to each worker has
//! tasks in one direction and how they ended in the other ([`rpc`]).
//!
//! Ballista would go on with what the other workers have. Its version 55.0 then takes the rows twice of tasks that had ended, of a stage
//! that begins anew (`reset_stages_internal` in its `execution_graph.rs` leaves their files with the stages behind), so it is not told.
//!
//! Invariants:
//! - A statement has a scheduler of its own, on threads of its own, which end with it.
//! - A worker keeps files as long as the stream of the statement is open, and hands out none but those.
//! - A scheduler is never told of a failure. When a worker is lost while stages run, the statement begins anew without it, and ends with an
//!   error when none is left; what fails otherwise fails for good.

mod codec;
mod cut;
mod executor;
mod kept;
mod kept_rows;
mod rpc;
mod scheduler;
mod statement;

pub(super) use cut::keeps_order_between;
pub(super) use executor::Stages;
pub(super) use rpc::StagesService;
pub(super) use statement::OnBallista;
