//! `pg_node_tree` of any text: braces without an end, nesting without a bottom, datums that lie about their length.
//!
//! Reading must neither panic nor exhaust the stack, and every field can be asked for everything that it could be.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pagemill_format::node_tree::{Const, Node, NodeStruct};

/// Asks every field for everything that it could be.
fn ask(node: &NodeStruct<'_>) {
    let _ = Const::of(node).and_then(|constant| constant.payload().map(drop));
    for (label, _) in &node.fields {
        let Ok(label) = std::str::from_utf8(label) else { continue };
        let _ = (node.boolean(label), node.number::<u32>(label), node.character(label));
        if let Ok(inner) = node.node(label) {
            ask(inner);
        }
        for inner in node.nodes(label).unwrap_or_default() {
            ask(inner);
        }
    }
}

fuzz_target!(|text: &[u8]| {
    if let Ok(Node::Struct(node)) = Node::parse(text) {
        ask(&node);
    }
});
