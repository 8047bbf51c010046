#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod advise_arguments;
#[cfg(feature = "arrow")]
pub mod arrow_arguments;
#[cfg(not(feature = "arrow"))]
#[path = "arrow_arguments_missing.rs"]
pub mod arrow_arguments;
pub mod cluster_arguments;
pub mod column_lists;
pub mod export_arguments;
pub mod failure;
pub mod lab_arguments;
pub mod ls_arguments;
pub mod output_paths;
pub mod progress;
pub mod read_arguments;
pub mod remedies;
pub mod remote_arguments;
#[cfg(feature = "remote")]
mod remote_remedies;
pub mod serve_arguments;
pub mod served_directories;
pub mod session;
pub mod sizes;
pub mod sql_arguments;
pub mod standard_output;
pub mod table_arguments;
pub mod table_files;
pub mod text_table;
pub mod values;
pub mod worker_arguments;
