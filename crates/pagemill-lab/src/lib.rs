//! Experiments on the user's own storage: old calls beside today's, what holds of what was claimed of them, and the
//! settings of PostgreSQL that follow.
//!
//! An experiment runs its contestants in turns and fills [`results::Results`]; everything that prints, draws, compares
//! or advises reads those and nothing else, so that a run that was kept says tomorrow what it says today.
#![forbid(unsafe_code)]

pub mod advice;
pub mod cache;
pub mod cancel;
pub mod contestant;
mod device_limit;
pub mod environment;
pub mod error;
pub mod experiments;
mod folded_stacks;
pub mod lab;
mod limits;
mod machine;
pub mod memory_group;
pub mod meter;
mod noise;
mod noise_floor;
pub mod profiler;
pub mod report;
pub mod results;
pub mod runner;
mod server;
pub mod verdicts;
pub mod watch;
pub mod workspace;

pub use advice::{Advice, Version, advise};
pub use cancel::Cancel;
pub use contestant::{Contestant, Work};
pub use environment::{Environment, look_around};
pub use error::{Error, Result};
pub use experiments::{Plan, Scale, Session};
pub use lab::{LabOptions, run};
pub use runner::{GroupPlan, Rounds, Runner};
pub use server::{Installation, InstallationSearch};
pub use verdicts::verdicts;
pub use watch::{Announcement, Nobody, Watch};
pub use workspace::Workspace;

pub use pagemill_statistics as statistics;
pub use pagemill_sys::watch_interrupts;
