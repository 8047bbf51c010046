#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod advise_arguments;
pub mod failure;
pub mod lab_arguments;
pub mod progress;
pub mod sizes;
pub mod text_table;
