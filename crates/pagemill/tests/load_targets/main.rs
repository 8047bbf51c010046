//! Loads into tables that are more than rows and B-trees: partitioned ones, ones with defaults, unlogged ones. The judge is
//! PostgreSQL: each table has a twin that a server fills by COPY from the same file.

mod constraints;
mod defaults;
mod partitions;
mod replay;
mod twin;
mod unlogged;
