//! Which operator or function a name means, given the types of its arguments: PostgreSQL's rules for overloads.
//!
//! Source: `func_get_detail`, `func_match_argtypes` and `func_select_candidate` in `src/backend/parser/parse_func.c`, `oper` in
//! `parse_oper.c`, `find_coercion_pathway` and `enforce_generic_type_consistency` in `parse_coerce.c`, PostgreSQL 18.

mod range_family;

use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use crate::catalog::{CastContext, CastRow, Catalog, FunctionRow, OperatorRow};
use crate::error::{Error, Result, SqlState, StatementError, unsupported};
use crate::types::{ANY, RECORD, RECORDS, UNKNOWN};
use range_family::RangeFamily;

/// The pseudo-types that stand for the types of the arguments.
///
/// Source: `src/include/catalog/pg_type.dat`, PostgreSQL 18.
mod polymorphic {
    use pagemill_format::Oid;

    pub(super) const ANYARRAY: Oid = Oid(2277);
    pub(super) const ANYELEMENT: Oid = Oid(2283);
    pub(super) const ANYNONARRAY: Oid = Oid(2776);
    pub(super) const ANYENUM: Oid = Oid(3500);
    pub(super) const ANYRANGE: Oid = Oid(3831);
    pub(super) const ANYMULTIRANGE: Oid = Oid(4537);
    pub(super) const ANYCOMPATIBLE: Oid = Oid(5077);
    pub(super) const ANYCOMPATIBLEARRAY: Oid = Oid(5078);
    pub(super) const ANYCOMPATIBLENONARRAY: Oid = Oid(5079);
    pub(super) const ANYCOMPATIBLERANGE: Oid = Oid(5080);
    pub(super) const ANYCOMPATIBLEMULTIRANGE: Oid = Oid(4538);

    pub(super) fn is_simple(oid: Oid) -> bool {
        matches!(oid, ANYELEMENT | ANYNONARRAY | ANYENUM | ANYCOMPATIBLE | ANYCOMPATIBLENONARRAY)
    }

    pub(super) fn is_array(oid: Oid) -> bool {
        matches!(oid, ANYARRAY | ANYCOMPATIBLEARRAY)
    }

    pub(super) fn is_any(oid: Oid) -> bool {
        is_simple(oid) || is_array(oid) || is_range(oid)
    }

    pub(super) fn is_range(oid: Oid) -> bool {
        matches!(oid, ANYRANGE | ANYMULTIRANGE | ANYCOMPATIBLERANGE | ANYCOMPATIBLEMULTIRANGE)
    }

    pub(super) fn is_multirange(oid: Oid) -> bool {
        matches!(oid, ANYMULTIRANGE | ANYCOMPATIBLEMULTIRANGE)
    }

    pub(super) fn is_compatible_family(oid: Oid) -> bool {
        matches!(oid, ANYCOMPATIBLE | ANYCOMPATIBLEARRAY | ANYCOMPATIBLENONARRAY)
    }
}

/// True for the pseudo-types of ranges whose bounds need only fit together with other arguments, which is not followed here.
pub(crate) fn is_compatible_range(oid: Oid) -> bool {
    matches!(oid, polymorphic::ANYCOMPATIBLERANGE | polymorphic::ANYCOMPATIBLEMULTIRANGE)
}

/// What a polymorphic type of a function's result is, given its arguments as declared and as they are; other types are
/// themselves.
///
/// # Errors
/// Where that cannot be told.
pub(crate) fn settled_type(
    catalog: &Catalog,
    wanted: Oid,
    declared: &[Oid],
    given: &[Oid],
) -> Result<Oid> {
    if !polymorphic::is_any(wanted) {
        return Ok(wanted);
    }
    let family = RangeFamily::of(catalog, declared, given)?;
    let element = family.element(catalog, declared, given)?;
    let found = match () {
        () if polymorphic::is_range(wanted) => family.settled(wanted),
        () if polymorphic::is_array(wanted) => {
            element.and_then(|oid| catalog.type_row(oid)).map(|row| row.array)
        }
        () => element,
    };
    match found.filter(|oid| *oid != Oid(0)) {
        Some(found) => Ok(found),
        None => unsupported(format!("a result of the type {}", catalog.type_name(wanted))),
    }
}

/// How a value of one type becomes one of another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pathway {
    /// It is one already, for PostgreSQL.
    Relabel,
    /// By a function.
    Function(Oid),
    /// By its text.
    Text,
    /// Element by element.
    Elements,
}

/// The way from one type to another that the context allows.
pub(crate) fn pathway(
    catalog: &Catalog,
    source: Oid,
    target: Oid,
    context: CastContext,
) -> Option<Pathway> {
    let (source, target) = (catalog.base_type(source, -1).0, catalog.base_type(target, -1).0);
    if source == target {
        return Some(Pathway::Relabel);
    }
    if let Some(CastRow { function, context: least, method }) = catalog.cast(source, target) {
        if *least > context {
            return None;
        }
        return Some(match method {
            b'b' => Pathway::Relabel,
            b'i' => Pathway::Text,
            _ => Pathway::Function(*function),
        });
    }
    let (from, to) = (catalog.type_row(source)?, catalog.type_row(target)?);
    // Vectors of the catalogs take no part, else they would catch what is meant for true arrays.
    if from.is_array() && to.is_array() && !matches!(target, oid::INT2VECTOR | oid::OIDVECTOR) {
        return match pathway(catalog, from.element, to.element, context)? {
            Pathway::Relabel => Some(Pathway::Relabel),
            _ => Some(Pathway::Elements),
        };
    }
    if context >= CastContext::Assignment && to.category == b'S' {
        return Some(Pathway::Text);
    }
    (context == CastContext::Explicit && from.category == b'S').then_some(Pathway::Text)
}

fn can_coerce(catalog: &Catalog, source: Oid, target: Oid) -> bool {
    if source == target || target == ANY {
        return true;
    }
    if source == UNKNOWN {
        return true;
    }
    let base = |oid| catalog.type_row(catalog.base_type(oid, -1).0);
    if target == RECORD && base(source).is_some_and(|row| row.kind == b'c') {
        return true;
    }
    // A record may be a row of any type until its fields are looked at.
    if source == RECORD && base(target).is_some_and(|row| row.kind == b'c') {
        return true;
    }
    if polymorphic::is_any(target) {
        return accepts(catalog, source, target);
    }
    pathway(catalog, source, target, CastContext::Implicit).is_some()
}

/// Whether a polymorphic argument takes a type, looked at alone.
fn accepts(catalog: &Catalog, source: Oid, target: Oid) -> bool {
    let base = catalog.base_type(source, -1).0;
    let Some(row) = catalog.type_row(base) else { return false };
    match target {
        _ if polymorphic::is_array(target) => row.is_array(),
        polymorphic::ANYENUM => row.kind == b'e',
        polymorphic::ANYNONARRAY | polymorphic::ANYCOMPATIBLENONARRAY => !row.is_array(),
        polymorphic::ANYRANGE | polymorphic::ANYCOMPATIBLERANGE => row.kind == b'r',
        polymorphic::ANYMULTIRANGE | polymorphic::ANYCOMPATIBLEMULTIRANGE => row.kind == b'm',
        _ => true,
    }
}

/// A function with the types that its arguments are to have, and that of its result.
#[derive(Debug, Clone)]
pub(crate) struct Chosen<'c> {
    /// The function.
    pub(crate) function: &'c FunctionRow,
    /// What each argument is to become.
    pub(crate) arguments: Vec<Oid>,
    /// What comes out.
    pub(crate) result: Oid,
}

/// One candidate: its position among the ones given, and the types of its arguments.
struct Candidate {
    at: usize,
    arguments: Vec<Oid>,
}

/// The operator that a name and the types of its operands mean; `left` is `None` for a prefix operator.
///
/// # Errors
/// When there is none, or several fit as well.
pub(crate) fn operator<'c>(
    catalog: &'c Catalog,
    name: &str,
    left: Option<Oid>,
    right: Oid,
) -> Result<Chosen<'c>> {
    let is_prefix = left.is_none();
    let visible = |row: &&OperatorRow| {
        (row.left == Oid(0)) == is_prefix && catalog.search_path().contains(&row.namespace)
    };
    let rows: Vec<&OperatorRow> = catalog.operators(name).iter().filter(visible).collect();
    let given: Vec<Oid> = left.into_iter().chain([right]).collect();
    let of = |row: &OperatorRow| match is_prefix {
        true => vec![row.right],
        false => vec![row.left, row.right],
    };
    // One literal of unknown type is taken for what the other operand is, if there is such an operator.
    let assumed = match given[..] {
        [UNKNOWN, other] if other != UNKNOWN => vec![other, other],
        [other, UNKNOWN] if other != UNKNOWN => vec![other, other],
        _ => given.clone(),
    };
    let exact = |types: &[Oid]| rows.iter().position(|row| of(row) == types);
    let bases: Vec<Oid> = assumed.iter().map(|oid| catalog.base_type(*oid, -1).0).collect();
    let found = exact(&given).or_else(|| exact(&assumed)).or_else(|| exact(&bases));
    let candidates =
        || rows.iter().enumerate().map(|(at, row)| Candidate { at, arguments: of(row) });
    let at = match found {
        Some(at) => Some(at),
        None => choose(catalog, candidates().collect(), &given)
            .map_err(|reason| no_operator(catalog, name, left, right, reason))?,
    };
    let row = at.map(|at| rows[at]);
    let row = row.ok_or_else(|| no_operator(catalog, name, left, right, Unresolved::None))?;
    let function = catalog.function(row.function).ok_or_else(|| {
        StatementError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("operator {name} has no function"),
        )
    })?;
    catalog.check_function(function)?;
    settle(catalog, function, of(row), &given)
}

/// Why no candidate was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unresolved {
    None,
    Several,
}

#[cold]
fn no_operator(
    catalog: &Catalog,
    name: &str,
    left: Option<Oid>,
    right: Oid,
    reason: Unresolved,
) -> Error {
    if left == Some(RECORDS) || right == RECORDS {
        let message = format!("the operator {name} of arrays of records");
        return StatementError::unsupported(message).into();
    }
    let left = left.map_or(String::new(), |left| catalog.type_name(left) + " ");
    let what = format!("{left}{name} {}", catalog.type_name(right));
    match reason {
        Unresolved::None => {
            let message = format!("operator does not exist: {what}");
            StatementError::new(SqlState::UNDEFINED_FUNCTION, message)
        }
        Unresolved::Several => {
            let message = format!("operator is not unique: {what}");
            StatementError::new(SqlState::AMBIGUOUS_FUNCTION, message)
        }
    }
    .with_hint("You might need to add explicit type casts.")
    .into()
}

/// The function that a name and the types of the arguments mean; the last ones may have been left out.
///
/// # Errors
/// When there is none, or several fit as well.
pub(crate) fn function<'c>(
    catalog: &'c Catalog,
    schema: Option<Oid>,
    name: &str,
    given: &[Oid],
) -> Result<Chosen<'c>> {
    let mut rows: Vec<(&FunctionRow, Vec<Oid>)> = Vec::new();
    for row in catalog.functions_named(name) {
        let is_visible = match schema {
            Some(schema) => row.namespace == schema,
            None => catalog.search_path().contains(&row.namespace),
        };
        if is_visible && let Some(arguments) = arguments_for(row, given.len()) {
            push_nearest(&mut rows, row, arguments);
        }
    }
    let exact = rows.iter().position(|(_, arguments)| *arguments == *given);
    let at = match exact {
        Some(at) => Some(at),
        None => {
            let candidates =
                rows.iter().enumerate().map(|(at, (_, a))| Candidate { at, arguments: a.clone() });
            choose(catalog, candidates.collect(), given)
                .map_err(|reason| no_function(catalog, (schema, name), given, reason))?
        }
    };
    let none = || no_function(catalog, (schema, name), given, Unresolved::None);
    let at = at.ok_or_else(none)?;
    let (row, arguments) = rows.swap_remove(at);
    settle(catalog, row, arguments, given)
}

/// The function that a name and the types of all its arguments mean.
///
/// # Errors
/// When there is none, several fit as well, or arguments are left to their defaults.
pub(crate) fn whole_function<'c>(
    catalog: &'c Catalog,
    schema: Option<Oid>,
    name: &str,
    given: &[Oid],
) -> Result<Chosen<'c>> {
    let chosen = function(catalog, schema, name, given)?;
    match chosen.left_out() {
        0 => Ok(chosen),
        _ => {
            let shown = crate::coerce::signature(catalog, chosen.function);
            unsupported(format!("function {shown} with arguments left to their defaults"))
        }
    }
}

/// Of functions that look alike for a call, the one that leaves the fewest arguments out and is not variadic.
fn push_nearest<'c>(
    rows: &mut Vec<(&'c FunctionRow, Vec<Oid>)>,
    row: &'c FunctionRow,
    arguments: Vec<Oid>,
) {
    let rank = |row: &FunctionRow| (row.variadic != Oid(0), left_out(row, arguments.len()));
    let same = rows.iter().position(|(other, known)| {
        *known == arguments && other.namespace == row.namespace && rank(other) != rank(row)
    });
    match same {
        Some(at) if rank(row) < rank(rows[at].0) => rows[at] = (row, arguments),
        Some(_) => {}
        None => rows.push((row, arguments)),
    }
}

/// How many arguments of a function are left to their defaults where so many are given.
fn left_out(row: &FunctionRow, count: usize) -> usize {
    match row.variadic {
        Oid(0) => row.arguments.len().saturating_sub(count),
        _ => 0,
    }
}

/// The types of a function's arguments where so many are given: a variadic one is repeated, those with defaults may be
/// left out.
fn arguments_for(row: &FunctionRow, count: usize) -> Option<Vec<Oid>> {
    let least = row.arguments.len().saturating_sub(row.defaults);
    if (least..=row.arguments.len()).contains(&count) && row.variadic == Oid(0) {
        return Some(row.arguments[..count].to_vec());
    }
    let fixed = row.arguments.len().checked_sub(1)?;
    if row.variadic == Oid(0) || count <= fixed {
        return None;
    }
    let mut arguments = row.arguments[..fixed].to_vec();
    arguments.resize(count, row.variadic);
    Some(arguments)
}

#[cold]
fn no_function(
    catalog: &Catalog,
    (schema, name): (Option<Oid>, &str),
    given: &[Oid],
    reason: Unresolved,
) -> Error {
    let list: Vec<String> = given.iter().map(|oid| catalog.type_name(*oid)).collect();
    let mut what = format!("{name}({})", list.join(", "));
    if let Some(schema) = schema {
        let namespaces = catalog.database().namespaces();
        let schema = namespaces.ok().and_then(|names| names.get(&schema).cloned());
        // It was found by its name a moment ago.
        what = format!("{}.{what}", String::from_utf8_lossy(&schema.unwrap_or_default()));
    }
    if reason == Unresolved::Several {
        let message = format!("function {what} is not unique");
        let error = StatementError::new(SqlState::AMBIGUOUS_FUNCTION, message);
        return error.with_hint("You might need to add explicit type casts.").into();
    }
    // A row is one of the types that its table inherits from, too, or is a table of.
    let is_row = |oid: &Oid| catalog.type_row(*oid).is_some_and(|row| row.kind == b'c');
    let takes_row = |row: &FunctionRow| row.arguments.iter().any(is_row);
    let may_be_taken = given.iter().any(is_row) && catalog.functions_named(name).any(takes_row);
    if may_be_taken || given.contains(&RECORDS) {
        let message = format!("rows, or an array of them, as arguments of {name}");
        return StatementError::unsupported(message).into();
    }
    let error = StatementError::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("function {what} does not exist"),
    );
    error.with_hint("No function matches the given name and argument types.").into()
}

impl<'c> Chosen<'c> {
    /// How many arguments were left to their defaults.
    pub(crate) fn left_out(&self) -> usize {
        left_out(self.function, self.arguments.len())
    }

    /// A function with all that it takes.
    ///
    /// # Errors
    /// When the types do not go together.
    pub(crate) fn whole(
        catalog: &'c Catalog,
        function: &'c FunctionRow,
        given: &[Oid],
    ) -> Result<Self> {
        settle(catalog, function, function.arguments.clone(), given)
    }
}

/// Puts the types of the arguments in place of polymorphic ones.
fn settle<'c>(
    catalog: &'c Catalog,
    function: &'c FunctionRow,
    declared: Vec<Oid>,
    given: &[Oid],
) -> Result<Chosen<'c>> {
    let family = RangeFamily::of(catalog, &declared, given)?;
    let element = family.element(catalog, &declared, given)?;
    let array = |element: Oid| catalog.type_row(element).map(|row| row.array).filter(|a| a.0 != 0);
    let settled = |oid: Oid| -> Option<Oid> {
        match oid {
            oid if polymorphic::is_range(oid) => family.settled(oid),
            oid if polymorphic::is_array(oid) => element.and_then(array),
            oid if polymorphic::is_simple(oid) => element,
            oid => Some(oid),
        }
    };
    // Ranges are named where only they are not known.
    let unsettled = |oid: Oid| {
        let named = match element {
            Some(_) if polymorphic::is_range(oid) => format!("{} ", catalog.type_name(oid)),
            _ => String::new(),
        };
        let what =
            format!("could not determine polymorphic type {named}because input has type unknown");
        Error::from(StatementError::new(SqlState::DATATYPE_MISMATCH, what))
    };
    let mut arguments = Vec::with_capacity(declared.len());
    for (oid, given) in declared.iter().zip(given) {
        arguments.push(match *oid {
            ANY => *given,
            oid => settled(oid).ok_or_else(|| unsettled(oid))?,
        });
    }
    let result = settled(function.result).ok_or_else(|| unsettled(function.result))?;
    Ok(Chosen { function, arguments, result })
}

fn polymorphic_element(catalog: &Catalog, declared: &[Oid], given: &[Oid]) -> Result<Option<Oid>> {
    let mut found: Option<Oid> = None;
    for (declared, given) in declared.iter().zip(given) {
        let given = catalog.base_type(*given, -1).0;
        let element = match *declared {
            _ if given == UNKNOWN => continue,
            oid if polymorphic::is_array(oid) => match catalog.type_row(given) {
                Some(row) if row.is_array() => row.element,
                _ => continue,
            },
            oid if polymorphic::is_simple(oid) => given,
            _ => continue,
        };
        found = Some(match found {
            None => element,
            Some(other) if other == element => other,
            Some(other) if polymorphic::is_compatible_family(*declared) => {
                common_of_two(catalog, other, element, "")?
            }
            Some(other) => {
                let message = format!(
                    "arguments declared \"anyelement\" are not all alike: {} versus {}",
                    catalog.type_name(other),
                    catalog.type_name(element)
                );
                return Err(StatementError::new(SqlState::DATATYPE_MISMATCH, message).into());
            }
        });
    }
    // Of those that need only fit together, literals alone are texts.
    let is_compatible = declared.iter().any(|oid| polymorphic::is_compatible_family(*oid));
    Ok(found.or(is_compatible.then_some(oid::TEXT)))
}

/// The best candidate; `None` when no one fits.
fn choose(
    catalog: &Catalog,
    mut candidates: Vec<Candidate>,
    given: &[Oid],
) -> Result<Option<usize>, Unresolved> {
    candidates.retain(|candidate| fits(catalog, given, &candidate.arguments));
    match candidates.len() {
        0 => return Ok(None),
        1 => return Ok(Some(candidates[0].at)),
        _ => {}
    }
    let base = |oid: &Oid| if *oid == UNKNOWN { UNKNOWN } else { catalog.base_type(*oid, -1).0 };
    let given: Vec<Oid> = given.iter().map(base).collect();
    let exact = |given: Oid, declared: Oid| given != UNKNOWN && given == declared;
    keep_best(&mut candidates, |candidate| {
        given.iter().zip(&candidate.arguments).filter(|(g, d)| exact(**g, **d)).count()
    });
    if let [only] = &candidates[..] {
        return Ok(Some(only.at));
    }
    let (category, preferred) = (
        |oid: Oid| catalog.type_row(oid).map_or(b'X', |row| row.category),
        |oid: Oid| catalog.type_row(oid).is_some_and(|row| row.is_preferred),
    );
    keep_best(&mut candidates, |candidate| {
        let counts = |(g, d): &(&Oid, &Oid)| {
            **g != UNKNOWN && (**g == **d || (preferred(**d) && category(**g) == category(**d)))
        };
        given.iter().zip(&candidate.arguments).filter(counts).count()
    });
    if let [only] = &candidates[..] {
        return Ok(Some(only.at));
    }
    if !given.contains(&UNKNOWN) {
        return Err(Unresolved::Several);
    }
    by_category(catalog, &mut candidates, &given);
    if let [only] = &candidates[..] {
        return Ok(Some(only.at));
    }
    by_known_type(catalog, &mut candidates, &given);
    match &candidates[..] {
        [only] => Ok(Some(only.at)),
        _ => Err(Unresolved::Several),
    }
}

/// True where each argument can become what is declared, and all of them together what polymorphic types ask for.
fn fits(catalog: &Catalog, given: &[Oid], declared: &[Oid]) -> bool {
    let mut pairs = given.iter().zip(declared);
    // An enum that no argument tells the type of is none.
    let mut enums = given.iter().zip(declared).filter(|(_, to)| **to == polymorphic::ANYENUM);
    let is_told = enums.clone().count() == 0 || enums.any(|(given, _)| *given != UNKNOWN);
    is_told
        && pairs.all(|(given, declared)| can_coerce(catalog, *given, *declared))
        && is_consistent(catalog, given, declared)
        && polymorphic_element(catalog, declared, given).is_ok()
}

/// Arguments of one polymorphic family are of one type, or arrays of it; a range is no element of ranges.
///
/// Source: `check_generic_type_consistency` in `src/backend/parser/parse_coerce.c`, PostgreSQL 18.
fn is_consistent(catalog: &Catalog, given: &[Oid], declared: &[Oid]) -> bool {
    let Ok(family) = RangeFamily::of(catalog, declared, given) else { return false };
    let mut element = family.0.map(|row| row.subtype);
    let has_range = declared.iter().any(|oid| polymorphic::is_range(*oid));
    for (given, declared) in given.iter().zip(declared) {
        if *given == UNKNOWN || polymorphic::is_compatible_family(*declared) {
            continue;
        }
        let base = catalog.base_type(*given, -1).0;
        let Some(row) = catalog.type_row(base) else { continue };
        let found = match *declared {
            oid if polymorphic::is_array(oid) && row.is_array() => row.element,
            oid if polymorphic::is_simple(oid)
                && has_range
                && family.0.is_none()
                && matches!(row.kind, b'r' | b'm') =>
            {
                return false;
            }
            // An array stands for itself, a domain over one included.
            oid if polymorphic::is_simple(oid) && row.is_array() => base,
            oid if polymorphic::is_simple(oid) => *given,
            _ => continue,
        };
        if element.is_some_and(|element| element != found) {
            return false;
        }
        element = Some(found);
    }
    true
}

fn keep_best(candidates: &mut Vec<Candidate>, score: impl Fn(&Candidate) -> usize) {
    let best = candidates.iter().map(&score).max().unwrap_or(0);
    candidates.retain(|candidate| score(candidate) == best);
}

/// Where arguments are of unknown type: the candidates that take the category that speaks for itself there.
fn by_category(catalog: &Catalog, candidates: &mut Vec<Candidate>, given: &[Oid]) {
    let category = |oid: Oid| catalog.type_row(oid).map_or(b'X', |row| row.category);
    let preferred = |oid: Oid| catalog.type_row(oid).is_some_and(|row| row.is_preferred);
    let mut wanted = Vec::new();
    for (position, _) in given.iter().enumerate().filter(|(_, oid)| **oid == UNKNOWN) {
        let mut found: Option<u8> = None;
        let mut is_clear = true;
        let mut has_preferred = false;
        for candidate in candidates.iter() {
            let oid = candidate.arguments[position];
            let this = category(oid);
            match found {
                None => (found, has_preferred) = (Some(this), preferred(oid)),
                Some(before) if before == this => has_preferred |= preferred(oid),
                // Texts win over all others.
                Some(_) if this == b'S' => (found, has_preferred) = (Some(this), preferred(oid)),
                Some(b'S') => {}
                Some(_) => is_clear = false,
            }
        }
        if !is_clear && found != Some(b'S') {
            return;
        }
        wanted.push((position, found.unwrap_or(b'X'), has_preferred));
    }
    let takes = |candidate: &Candidate| {
        wanted.iter().all(|(position, wanted, has_preferred)| {
            let oid = candidate.arguments[*position];
            category(oid) == *wanted && (!has_preferred || preferred(oid))
        })
    };
    if candidates.iter().any(takes) {
        candidates.retain(takes);
    }
}

/// Where all known arguments are of one type, those of unknown type are taken for it.
fn by_known_type(catalog: &Catalog, candidates: &mut Vec<Candidate>, given: &[Oid]) {
    let mut known = given.iter().filter(|oid| **oid != UNKNOWN);
    let Some(first) = known.next() else { return };
    if known.any(|oid| oid != first) {
        return;
    }
    let all: Vec<Oid> = given.iter().map(|_| *first).collect();
    let takes = |c: &Candidate| fits(catalog, &all, &c.arguments);
    if candidates.iter().filter(|candidate| takes(candidate)).count() == 1 {
        candidates.retain(takes);
    }
}

/// The type that several expressions are brought to: in CASE, VALUES, UNION, COALESCE, ARRAY.
///
/// Source: `select_common_type` in `src/backend/parser/parse_coerce.c`, PostgreSQL 18.
///
/// # Errors
/// When they have none in common.
pub(crate) fn common_type(catalog: &Catalog, given: &[Oid]) -> Result<Oid> {
    common_type_of(catalog, given, "")
}

/// The same, for a form whose name errors say.
///
/// # Errors
/// When they have none in common.
pub(crate) fn common_type_of(catalog: &Catalog, given: &[Oid], form: &str) -> Result<Oid> {
    let Some(first) = given.first() else { return Ok(oid::TEXT) };
    if *first != UNKNOWN && given.iter().all(|oid| oid == first) {
        return Ok(*first);
    }
    let mut chosen = UNKNOWN;
    for oid in given.iter().filter(|oid| **oid != UNKNOWN) {
        let oid = catalog.base_type(*oid, -1).0;
        chosen = if chosen == UNKNOWN { oid } else { common_of_two(catalog, chosen, oid, form)? };
    }
    Ok(if chosen == UNKNOWN { oid::TEXT } else { chosen })
}

fn common_of_two(catalog: &Catalog, chosen: Oid, next: Oid, form: &str) -> Result<Oid> {
    if chosen == next {
        return Ok(chosen);
    }
    let (Some(a), Some(b)) = (catalog.type_row(chosen), catalog.type_row(next)) else {
        return Ok(chosen);
    };
    let implicit = |from, to| pathway(catalog, from, to, CastContext::Implicit).is_some();
    if a.category != b.category {
        let message = format!(
            "{form}{}types {} and {} cannot be matched",
            if form.is_empty() { "" } else { " " },
            catalog.type_name(chosen),
            catalog.type_name(next)
        );
        return Err(StatementError::new(SqlState::DATATYPE_MISMATCH, message).into());
    }
    let takes_next = !a.is_preferred && implicit(chosen, next) && !implicit(next, chosen);
    Ok(if takes_next { next } else { chosen })
}
