//! Questions to the cluster's own catalogs, asked as statements.
//!
//! Invariant: every value comes back as the text that the server's output function gives it.

use pagemill_engine::Progress;
use pagemill_format::Oid;
use tokio::runtime::Handle;

use super::damaged;
use crate::error::Result;
use crate::output::ValuePrinter;
use crate::session::Session;

/// What stands in a statement for the chosen relations, as an array.
const CHOSEN: &str = "{chosen}";

/// A session that is asked.
pub(super) struct Catalogs<'s> {
    pub(super) session: &'s Session,
    pub(super) runtime: &'s Handle,
}

/// A row, its values as texts.
pub(super) type Row = Vec<Option<String>>;

impl Catalogs<'_> {
    /// The cluster's major version.
    pub(super) fn major(&self) -> u32 {
        self.session.catalog().database().cluster().version().major()
    }

    /// The rows of a statement.
    pub(super) fn rows(&self, statement: &str, chosen: &[Oid]) -> Result<Vec<Row>> {
        let list: Vec<String> = chosen.iter().map(|oid| oid.0.to_string()).collect();
        let statement =
            statement.replace(CHOSEN, &format!("'{{{}}}'::pg_catalog.oid[]", list.join(",")));
        let parsed = Session::parse(&statement)?;
        let mut found = Vec::new();
        for statement in &parsed {
            self.runtime.block_on(self.collect(statement, &mut found))?;
        }
        Ok(found)
    }

    async fn collect(
        &self,
        statement: &sqlparser::ast::Statement,
        found: &mut Vec<Row>,
    ) -> Result<()> {
        let mut rows = self.session.start(statement, &Progress::default()).await?;
        let catalog = self.session.catalog();
        let columns = rows.columns().len();
        let mut printer = ValuePrinter::new(catalog, rows.columns(), |_| false)?;
        while let Some(batch) = rows.next().await? {
            for row in 0..batch.num_rows() {
                let mut values = Row::new();
                for column in 0..columns {
                    let mut text = Vec::new();
                    let is_there = printer.print(&batch, (row, column), &mut text)?;
                    values.push(is_there.then(|| String::from_utf8_lossy(&text).into_owned()));
                }
                found.push(values);
            }
        }
        Ok(())
    }

    /// The rows of a statement of one column.
    pub(super) fn texts(&self, statement: &str, chosen: &[Oid]) -> Result<Vec<String>> {
        let rows = self.rows(statement, chosen)?.into_iter();
        rows.map(|row| written(row).map(|[text]| text)).collect()
    }

    /// The rows of a statement of two columns.
    pub(super) fn pairs(&self, statement: &str, chosen: &[Oid]) -> Result<Vec<(String, String)>> {
        let rows = self.rows(statement, chosen)?.into_iter();
        rows.map(|row| written(row).map(|[of, text]| (of, text))).collect()
    }
}

/// The values of a row, none of which may be NULL: a part of a definition that could not be had would make all of it NULL.
fn written<const N: usize>(row: Row) -> Result<[String; N]> {
    let values: Option<Vec<String>> = row.into_iter().collect();
    let values = values.and_then(|values| values.try_into().ok());
    values.ok_or_else(|| {
        damaged("a catalog names what is not there: a definition cannot be written".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_without_one_of_its_parts_is_an_error() {
        let there = || Some("there".to_owned());
        assert_eq!(written(vec![there()]).unwrap(), ["there"]);
        assert!(written::<1>(vec![None]).is_err());
        assert!(written::<2>(vec![there(), None]).is_err());
    }
}
