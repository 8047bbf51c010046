#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod backup;
pub mod barman;
pub mod brin;
pub mod btree;
pub mod btree_builder;
pub mod byte_scan;
pub mod checksum;
pub mod control;
pub mod error;
pub mod free_space_map_builder;
pub mod heap_builder;
pub mod ids;
pub mod index_tuple_builder;
pub mod lz4;
pub mod node_tree;
#[cfg(test)]
mod noise;
pub mod page;
pub mod page_builder;
pub mod pgbackrest;
pub mod pglz;
pub mod pglz_compression;
pub mod reader;
pub mod relmap;
pub mod slru;
pub mod toast_builder;
pub mod tuple;
pub mod tuple_builder;
pub mod tuple_data_builder;
pub mod tuple_update;
pub mod twophase;
pub mod varlena;
pub mod visibility_map;
pub mod visibility_map_builder;
pub mod wal;
pub mod walg;
pub mod zstd;

pub use error::{Error, ErrorKind, Result};
pub use ids::*;
