//! `pagemill clone` and `pagemill drop`, with servers of every installed version as the judges.
//!
//! Each test makes clusters of its own; what a version or this machine does not have is skipped, and told.

mod copied;
mod dropped;
mod fixture;
mod followed;
mod interrupted;
mod refused;
mod space;
