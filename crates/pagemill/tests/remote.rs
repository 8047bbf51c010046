//! Data directories on an object store: what the command says of them is byte for byte what it says of the same files here.
//!
//! The server is s3s over the directory, with latency and faults in front; its log is what requests are counted by. The clusters
//! are made by PostgreSQL.
#![cfg(feature = "remote")]

mod remote {
    mod clusters;
    mod damaged_stores;
    mod other_stores;
    mod requests;
    mod stored;
}
