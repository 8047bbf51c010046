//! `pagemill lab --compare`: two runs side by side, out of what they wrote as JSON.
//!
//! On standard output as text; as a document where one is named.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use pagemill_io::Storage;
use pagemill_lab::report::compare::{self, Run};
use pagemill_lab::report::{self, read_json};
use pagemill_lab::results::Results;

use crate::failure::Completion;
use crate::lab::print;
use crate::lab_arguments::LabArguments;
use crate::lab_documents::{finish, new_outputs};

/// More than any run writes.
const LARGEST: u64 = 1 << 30;

/// Writes two runs in one form.
type Form = fn(&Run<'_>, &Run<'_>, &mut dyn Write) -> report::Result<()>;

pub(crate) fn run(arguments: &LabArguments, first: &Path, second: &Path) -> Result<Completion> {
    let storage = Storage::real().untimed();
    let (one, other) = (read(&storage, first)?, read(&storage, second)?);
    let labels = [label(first), label(second)];
    let one = Run { label: &labels[0], results: &one };
    let other = Run { label: &labels[1], results: &other };
    let forms: [(_, Form); 2] = [
        (arguments.markdown.as_ref(), compare::markdown),
        (arguments.html.as_ref(), compare::html),
    ];
    let named = forms.into_iter().filter_map(|(path, form)| Some((path?.as_path(), form)));
    for (output, form) in new_outputs(&storage, named.collect(), arguments.force, &[first, second])?
    {
        finish(output, |bytes| form(&one, &other, bytes))?;
    }
    let mut text = Vec::new();
    compare::text(&one, &other, &mut text)?;
    print(&String::from_utf8_lossy(&text))?;
    Ok(Completion::Done)
}

/// The results of a run that was kept.
pub(crate) fn read(storage: &Storage, path: &Path) -> Result<Results> {
    let bytes = storage.read_file(path, LARGEST)?;
    read_json(&bytes).with_context(|| path.display().to_string())
}

fn label(path: &Path) -> String {
    let name = path.file_stem().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
