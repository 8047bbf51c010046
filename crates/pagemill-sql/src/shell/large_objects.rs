//! `\lo_export`: a large object as a file, which appears when it is whole.
//!
//! Invariant: of an object of any size only a part is in memory.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use pagemill_engine::Progress;
use pagemill_format::Oid;

use super::Shell;
use super::running::{cancelled, interruptible};
use super::target::Target;
use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::functions::large_objects::part_of_object;

/// Bytes that are read at a time.
const PART_BYTES: i32 = 8 << 20;

impl Shell {
    /// The command, with what follows it.
    ///
    /// # Errors
    /// Where the shell cannot go on.
    pub(super) fn export_object(&mut self, words: &[String]) -> Result<()> {
        let [number, path] = words else {
            self.complain("\\lo_export: the number of an object and a file are expected");
            return Ok(());
        };
        let Ok(number) = number.parse() else {
            self.complain(format!("\\lo_export: {number} is not the number of an object"));
            return Ok(());
        };
        let (catalog, path) = (self.session.catalog().clone(), path.clone());
        match interruptible(move |cancel| export(&catalog, Oid(number), Path::new(&path), cancel)) {
            Ok(()) => self.say("lo_export"),
            Err(error) => self.tell(error)?,
        }
        Ok(())
    }
}

fn export(catalog: &Arc<Catalog>, object: Oid, path: &Path, cancel: &Progress) -> Result<()> {
    let output = |error| Error::Engine(pagemill_engine::Error::Output(error));
    let mut part = part_of_object(catalog, object, (0, PART_BYTES))?;
    let mut target = Target::whole(path).map_err(output)?;
    let mut start = 0;
    loop {
        target.write_all(&part)?;
        if part.len() < PART_BYTES as usize {
            return target.finish().map_err(output);
        }
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        start += i64::from(PART_BYTES);
        part = part_of_object(catalog, object, (start, PART_BYTES))?;
    }
}
