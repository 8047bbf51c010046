//! `pagemill clone` and `pagemill drop`, with servers of every installed version as the judges.

mod copied;
mod dropped;
mod followed;
mod ground;
mod interrupted;
mod refused;
mod space;
