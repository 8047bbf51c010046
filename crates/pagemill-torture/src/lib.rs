#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod campaign;
pub mod case;
pub mod database_fixture;
pub mod database_judge;
pub mod database_kind;
pub mod judge;
pub mod kills;
pub mod kind;
pub mod load_fixture;
pub mod page_oracle;
pub mod postmaster;
pub mod power_cuts;
pub mod recording;
pub mod row_oracle;
pub mod scratch;
pub mod server_kills;
pub mod server_load;
pub mod trial;
pub mod work;
pub mod write_faults;
