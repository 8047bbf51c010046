//! What records do to tuples, in words and as JSON. In words, equal actions of neighbors are told as one: a record of COPY
//! inserts a hundred tuples.

use pagemill_redo::{TupleAction, TupleChange};
use serde_json::{Value, json};

/// `1 to 3, 7 inserted; 9 deleted`.
pub(crate) fn changes_text(changes: &[TupleChange]) -> String {
    let of_one = |group: &[TupleChange]| {
        let action = group.first().map(|change| change.action.to_string()).unwrap_or_default();
        format!("{} {action}", numbers(group))
    };
    let groups = changes.chunk_by(|one, next| one.action == next.action);
    groups.map(of_one).collect::<Vec<_>>().join("; ")
}

fn numbers(group: &[TupleChange]) -> String {
    let follows = |one: &TupleChange, next: &TupleChange| {
        one.line_pointer.checked_add(1) == Some(next.line_pointer)
    };
    let run = |run: &[TupleChange]| match run {
        [first, .., last] if run.len() > 2 => {
            format!("{} to {}", first.line_pointer, last.line_pointer)
        }
        _ => {
            let each = run.iter().map(|change| change.line_pointer.to_string());
            each.collect::<Vec<_>>().join(", ")
        }
    };
    group.chunk_by(follows).map(run).collect::<Vec<_>>().join(", ")
}

/// An array of line pointers, each with what is done to it.
pub(crate) fn changes_json(changes: &[TupleChange]) -> Value {
    let one = |change: &TupleChange| {
        let (action, to) = action_json(change.action);
        json!({ "line_pointer": change.line_pointer, "action": action, "tid": to })
    };
    Value::Array(changes.iter().map(one).collect())
}

/// A word for an action, and the other tuple that it names.
pub(crate) fn action_json(action: TupleAction) -> (&'static str, Option<String>) {
    let word = match action {
        TupleAction::Insert => "insert",
        TupleAction::NewVersion(old) => return ("new version", Some(old.to_string())),
        TupleAction::Update(new) => return ("update", Some(new.to_string())),
        TupleAction::Delete => "delete",
        TupleAction::MoveToPartition => "move to partition",
        TupleAction::TakeBack => "take back",
        TupleAction::Lock => "lock",
        TupleAction::Confirm => "confirm",
        TupleAction::Overwrite => "overwrite",
        TupleAction::Freeze => "freeze",
        TupleAction::Redirect(to) => return ("redirect", Some(to.to_string())),
        TupleAction::Dead => "dead",
        TupleAction::Unused => "unused",
    };
    (word, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbors_with_one_action_are_told_together() {
        let change = |line_pointer, action| TupleChange { line_pointer, action };
        let (insert, delete) = (TupleAction::Insert, TupleAction::Delete);
        let changes = [1, 2, 3, 7, 8].map(|number| change(number, insert));
        let changes = [&changes[..], &[change(9, delete)]].concat();
        assert_eq!(changes_text(&changes), "1 to 3, 7, 8 inserted; 9 deleted");
        assert_eq!(changes_text(&[]), "");
    }
}
