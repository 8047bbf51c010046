//! What privileges a role has on an object: `has_table_privilege` and its kin, in all their forms.
//!
//! ```text
//! has_column_privilege_name_id_attnum     a name or a number for each of: the role, if it is not the session's,
//!                      ──── ── ──────     the object, the column
//! ```
//!
//! Invariant: NULL for an object that there is not and that was given by its number; an error where it was named. The answer is
//! that of [`crate::rights`], by which statements are let through, too.
//!
//! Source: `src/backend/utils/adt/acl.c`, `src/backend/utils/misc/rls.c`, PostgreSQL 14 to 18.

pub(super) mod names;
pub(super) mod words;

use std::collections::HashMap;

use arrow::array::{Array as _, ArrayRef, AsArray};
use arrow::datatypes::{Int16Type, UInt32Type};
use pagemill_cluster::RelationKind;
use pagemill_format::Oid;

use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::{Implementation, KernelCall};
use super::statement_error;
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, StatementError};
use crate::rights::{
    DATABASES, FUNCTIONS, Kind, LANGUAGES, LARGE_OBJECTS, PARAMETERS, SCHEMAS, SERVERS,
    TABLESPACES, TYPES, WRAPPERS, Wanted,
};
use crate::roles::BOOTSTRAP_ROLE;
use crate::system_rows::for_each_row;
use words::Words;

/// What a call is about.
#[derive(Clone, Copy)]
enum About {
    Tables,
    Columns,
    AnyColumn,
    Sequences,
    Parameters,
    /// Objects that have nothing of their own here.
    Others(&'static Kind, Words),
}

/// How something is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Name,
    Number,
}

/// A call by its name.
struct Question {
    about: About,
    /// `None` for the session's.
    role: Option<Form>,
    column: Option<Form>,
}

fn about(of: &str) -> Option<About> {
    use About::Others;
    Some(match of {
        "table" => About::Tables,
        "column" => About::Columns,
        "any_column" => About::AnyColumn,
        "sequence" => About::Sequences,
        "parameter" => About::Parameters,
        "schema" => Others(&SCHEMAS, words::OF_SCHEMAS),
        "database" => Others(&DATABASES, words::OF_DATABASES),
        "function" => Others(&FUNCTIONS, words::OF_FUNCTIONS),
        "language" => Others(&LANGUAGES, words::USAGE),
        "largeobject" => Others(&LARGE_OBJECTS, words::OF_LARGE_OBJECTS),
        "type" => Others(&TYPES, words::USAGE),
        "tablespace" => Others(&TABLESPACES, words::OF_TABLESPACES),
        "server" => Others(&SERVERS, words::USAGE),
        "foreign_data_wrapper" => Others(&WRAPPERS, words::USAGE),
        _ => return None,
    })
}

impl Question {
    fn of(key: &str) -> Option<Self> {
        let (of, forms) = key.strip_prefix("has_")?.split_once("_privilege_")?;
        let about = about(of)?;
        let form = |form| match form {
            "name" => Some(Form::Name),
            "id" | "attnum" => Some(Form::Number),
            _ => None,
        };
        let mut forms = forms.split('_').map(form).collect::<Option<Vec<Form>>>()?;
        let column = match about {
            About::Columns => Some(forms.pop()?),
            _ => None,
        };
        // The object's own form is told by what is given.
        forms.pop()?;
        Some(Self { about, role: forms.pop(), column }).filter(|_| forms.is_empty())
    }
}

pub(super) fn find(key: &str) -> Option<Implementation> {
    match key {
        "row_security_active" | "row_security_active_name" => {
            Some(Implementation::Kernel(are_policies_active))
        }
        _ => Question::of(key).map(|_| Implementation::Kernel(answers)),
    }
}

/// An argument of a row.
enum Given<'a> {
    Text(&'a str),
    Number(u32),
    Column(i16),
}

fn given(array: &ArrayRef, row: usize) -> Option<Given<'_>> {
    if array.is_null(row) {
        return None;
    }
    if let Some(numbers) = array.as_primitive_opt::<UInt32Type>() {
        return Some(Given::Number(numbers.value(row)));
    }
    match array.as_primitive_opt::<Int16Type>() {
        Some(numbers) => Some(Given::Column(numbers.value(row))),
        None => Some(Given::Text(strings(array).value(row))),
    }
}

fn answers(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let question = Question::of(&call.key).expect("a kernel is found by its name"); // infallible: it was when the call was made
    let mut asked = Asked { catalog: &call.catalog, question, columns: None };
    let rows = arguments.first().map_or(0, |array| array.len());
    let one = |row| {
        let given: Option<Vec<Given<'_>>> =
            arguments.iter().map(|array| given(array, row)).collect();
        given.map_or(Ok(None), |given| asked.answer(&given))
    };
    Made::column((0..rows).map(one).collect::<Outcome<Vec<Option<bool>>>>()?)
}

/// Names of columns, and whether they are dropped.
type Columns = HashMap<(Oid, i16), (String, bool)>;

/// A call on its way over the rows.
struct Asked<'c> {
    catalog: &'c Catalog,
    question: Question,
    /// Read when they are first asked for.
    columns: Option<Columns>,
}

impl Asked<'_> {
    fn answer(&mut self, given: &[Given<'_>]) -> Outcome<Option<bool>> {
        let mut rest = given.iter();
        let mut next = || rest.next().expect("a call has its arguments"); // infallible: by its name
        let (role, object) = (self.question.role.map(|_| next()), next());
        let column = self.question.column.map(|_| next());
        let Given::Text(list) = next() else { return Ok(None) };
        let known = self.known();
        // Two kinds look at the words before the names.
        let early = match self.question.about {
            About::Sequences | About::Parameters => Some(words::wanted(list, known)?),
            _ => None,
        };
        let role = self.role(role)?;
        if let About::Parameters = self.question.about {
            return self.of_parameter(role, object, early.unwrap_or_default());
        }
        let object = self.object(object)?;
        let column = column.map(|column| self.column(object, column)).transpose()?;
        let wanted = early.map_or_else(|| words::wanted(list, known), Ok)?;
        self.of(role, (object, column), wanted).map_err(statement_error)
    }

    fn known(&self) -> Words {
        let major = self.catalog.database().cluster().version().major();
        match self.question.about {
            About::Tables => words::of_tables(major),
            About::Columns | About::AnyColumn => words::OF_COLUMNS,
            About::Sequences => words::OF_SEQUENCES,
            About::Parameters => words::OF_PARAMETERS,
            About::Others(_, words) => words,
        }
    }

    fn role(&self, given: Option<&Given<'_>>) -> Outcome<Oid> {
        match given {
            Some(Given::Text(name)) => names::role_or_public(self.catalog, name),
            Some(Given::Number(number)) => Ok(Oid(*number)),
            _ => session_role(self.catalog),
        }
    }

    fn object(&self, given: &Given<'_>) -> Outcome<Oid> {
        let object = match (given, self.question.about) {
            (Given::Number(number), _) => Oid(*number),
            (Given::Text(name), About::Others(kind, _)) => {
                return names::object(self.catalog, kind, name);
            }
            (Given::Text(name), _) => names::relation(self.catalog, name)?,
            (Given::Column(_), _) => Oid(0),
        };
        if let About::Sequences = self.question.about {
            self.check_sequence(object, given)?;
        }
        Ok(object)
    }

    /// Refuses a relation of another kind.
    fn check_sequence(&self, oid: Oid, given: &Given<'_>) -> Outcome<()> {
        let class = self.catalog.database().class(oid);
        let Some(class) = class.filter(|class| class.kind != RelationKind::Sequence) else {
            return Ok(());
        };
        let name = match given {
            Given::Text(name) => (*name).into(),
            _ => String::from_utf8_lossy(&class.name),
        };
        Err(StatementError::new(SqlState("42809"), format!("\"{name}\" is not a sequence")))
    }

    /// The number of a column; `None` where it was dropped, or its table is not there.
    fn column(&mut self, table: Oid, given: &Given<'_>) -> Outcome<Option<i16>> {
        if self.columns.is_none() {
            self.columns = Some(columns(self.catalog).map_err(statement_error)?);
        }
        let columns = self.columns.iter().flatten();
        match given {
            Given::Column(number) => {
                let known = self.columns.as_ref().and_then(|all| all.get(&(table, *number)));
                Ok(known.filter(|(_, is_dropped)| !is_dropped).map(|_| *number))
            }
            Given::Text(wanted) => {
                let mut of = columns.filter(|((of, _), (name, _))| *of == table && name == wanted);
                match (of.next(), self.catalog.database().class(table)) {
                    (Some(((_, number), (_, is_dropped))), _) => {
                        Ok(Some(*number).filter(|_| !is_dropped))
                    }
                    (None, None) => Ok(None),
                    (None, Some(class)) => Err(no_column(wanted, &class.name)),
                }
            }
            Given::Number(_) => Ok(None),
        }
    }

    fn of(
        &self,
        role: Oid,
        (object, column): (Oid, Option<Option<i16>>),
        wanted: Wanted,
    ) -> Result<Option<bool>> {
        let catalog = self.catalog;
        let of_whole = || catalog.may_relation(role, object, wanted);
        match (self.question.about, column) {
            (About::Others(kind, _), _) => catalog.may(role, (kind, object), wanted),
            (About::Columns, Some(None)) => Ok(None),
            (About::Columns | About::AnyColumn, column) => {
                let column = (object, column.flatten());
                let has_own = catalog.may_column(role, column, wanted)?;
                Ok(of_whole()?.map(|has| has || has_own))
            }
            _ => of_whole(),
        }
    }

    fn of_parameter(&self, role: Oid, given: &Given<'_>, wanted: Wanted) -> Outcome<Option<bool>> {
        let Given::Text(name) = given else { return Ok(None) };
        let members = self.catalog.members().map_err(statement_error)?;
        if members.is_superuser(role) {
            return Ok(Some(true));
        }
        let name = match name.to_ascii_lowercase() {
            old if old == "sort_mem" => "work_mem".to_owned(),
            old if old == "vacuum_mem" => "maintenance_work_mem".to_owned(),
            name => name,
        };
        let found = self.catalog.objects(&PARAMETERS).map_err(statement_error)?.named(&name);
        let Some(found) = found else { return Ok(Some(false)) };
        self.catalog.may(role, (&PARAMETERS, found), wanted).map_err(statement_error)
    }
}

/// Who asks; any superuser has what every other one has.
pub(super) fn session_role(catalog: &Catalog) -> Outcome<Oid> {
    match catalog.role() {
        Some(role) => Ok(role),
        None => {
            let user = catalog.database().current_user();
            let user = user.map_err(|error| statement_error(error.into()))?;
            let members = catalog.members().map_err(statement_error)?;
            Ok(members.named(&user).unwrap_or(BOOTSTRAP_ROLE)) // default: without a name, the first superuser reads the files
        }
    }
}

fn no_column(wanted: &str, table: &[u8]) -> StatementError {
    let table = String::from_utf8_lossy(table);
    let message = format!("column \"{wanted}\" of relation \"{table}\" does not exist");
    StatementError::new(SqlState::UNDEFINED_COLUMN, message)
}

fn columns(catalog: &Catalog) -> Result<Columns> {
    let mut found = Columns::new();
    let wanted = ["attrelid", "attnum", "attname", "attisdropped"];
    for_each_row(catalog.values(), "pg_attribute", &wanted, |row| {
        found.insert((row.oid(0), row.int2(1)), (row.name(2), row.bool(3)));
        Ok(())
    })?;
    Ok(found)
}

/// Whether policies hide rows of a table from the session's role.
fn are_policies_active(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let catalog = &call.catalog;
    let one = |row| {
        let table = match given(&arguments[0], row) {
            None | Some(Given::Column(_)) => return Ok(None),
            Some(Given::Text(name)) => names::relation(catalog, name)?,
            Some(Given::Number(number)) => Oid(number),
        };
        let Some(role) = catalog.role() else { return Ok(Some(false)) };
        catalog.is_row_security_active(role, table).map(Some).map_err(statement_error)
    };
    Made::column((0..arguments[0].len()).map(one).collect::<Outcome<Vec<Option<bool>>>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_calls_tell_what_is_given() {
        let forms = |key| Question::of(key).map(|of| (of.role, of.column));
        let (name, number) = (Form::Name, Form::Number);
        assert_eq!(forms("has_table_privilege_id"), Some((None, None)));
        let all = forms("has_column_privilege_name_id_attnum");
        assert_eq!(all, Some((Some(name), Some(number))));
        assert_eq!(forms("has_column_privilege_id_name"), Some((None, Some(name))));
        let wrapper = forms("has_foreign_data_wrapper_privilege_id_name");
        assert_eq!(wrapper, Some((Some(number), None)));
        for other in
            ["has_table_privilege", "has_nothing_privilege_id", "has_table_privilege_id_id_id"]
        {
            assert!(forms(other).is_none(), "{other}");
        }
    }
}
