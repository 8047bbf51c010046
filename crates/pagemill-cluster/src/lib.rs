#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod all_visible;
mod bootstrap;
pub mod btree_scan;
mod catalog_rows;
pub mod column;
pub mod data_directory;
pub mod database;
mod date_settings;
pub mod error;
pub mod heap;
pub mod hot_chain;
pub mod index;
mod input_rows;
mod name_rows;
mod name_search;
pub mod names;
pub mod page_check;
pub mod relation;
pub mod settings;
mod system_table;
pub mod tablespace_settings;
pub mod time_zones;
pub mod toast;
mod toast_index;
pub mod transaction_log;
pub mod value_inputs;
pub mod value_lookups;
pub mod value_types;
pub mod visibility;

pub use all_visible::AllVisible;
pub use column::{Column, Generated};
pub use data_directory::{Cluster, OpenOptions};
pub use database::{Database, DatabaseRow};
pub use error::{Damage, Error, Result};
pub use index::IndexRow;
pub use name_search::InputNames;
pub use relation::{ClassRow, Persistence, Relation, RelationKind};
pub use tablespace_settings::{InUse, SettingSource, TablespaceSettings};
pub use time_zones::TimeZones;
pub use transaction_log::ClusterLog;
pub use value_inputs::{InputCatalog, InputColumn};
pub use value_lookups::{TextEncoder, ValueCatalog, ValueLookups};
pub use value_types::UnknownTypes;
