//! Experiments on the user's own storage: old calls beside today's, what holds of what was claimed of them, and the
//! settings of PostgreSQL that follow.
//!
//! An experiment runs its contestants in turns and fills [`results::Results`]; everything that prints, draws, compares
//! or advises reads those and nothing else, so that a run that was kept says tomorrow what it says today.
#![forbid(unsafe_code)]

pub mod report;
pub mod results;
pub mod statistics;
