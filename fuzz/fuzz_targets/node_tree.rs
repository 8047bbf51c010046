//! `pg_node_tree` of any text: braces without an end, nesting without a bottom, datums that lie about their length.
//!
//! Reading must neither panic nor exhaust the stack, and every field can be asked for everything that it could be.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::expression_tree::{Node, Value, parse};

/// Asks every field for everything that it could be.
fn ask(node: &Node) {
    for field in &node.fields {
        let _ = (node.datum(&field.name), node.truth(&field.name), node.number::<u32>(&field.name));
        for inner in node.nodes(&field.name).into_iter().flatten() {
            ask(inner);
        }
    }
}

fuzz_target!(|text: &[u8]| {
    if let Ok(Value::Node(node)) = parse(text) {
        ask(&node);
    }
});
