//! Arrays from texts with delimiters, and to them.
//!
//! Source: `array_to_text_internal`, `split_text` in `src/backend/utils/adt/varlena.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef};

use super::super::keys::strings;
use super::super::rows::{Made, Outcome};
use super::super::text_form::printer_of;
use super::super::{Kernel, KernelCall};
use super::value::{ArrayParts, ElementType};
use super::{array_at, elements_of};

pub(super) fn find(key: &str) -> Option<Kernel> {
    Some(match key {
        "array_to_text" | "array_to_text_null" => to_text,
        "text_to_array" | "text_to_array_null" => to_array,
        _ => return None,
    })
}

fn text_at(arguments: &[ArrayRef], place: usize, row: usize) -> Option<&str> {
    let column = arguments.get(place).filter(|column| !column.is_null(row))?;
    Some(strings(column).value(row))
}

fn to_text(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let elements = elements_of(call, 0)?;
    let mut printer = printer_of(&call.catalog, elements.ty)?;
    let mut texts = Vec::with_capacity(arguments[0].len());
    for row in 0..arguments[0].len() {
        let parts = array_at(&elements, &arguments[0], row)?;
        let (Some(parts), Some(delimiter)) = (parts, text_at(arguments, 1, row)) else {
            texts.push(None);
            continue;
        };
        let mut list: Vec<String> = Vec::with_capacity(parts.elements.len());
        for element in &parts.elements {
            match element {
                Some(element) => {
                    let column = elements.column(vec![elements.value(Some(element))?])?;
                    let mut text = Vec::new();
                    printer.print(&column, 0, &mut text)?;
                    list.push(String::from_utf8_lossy(&text).into_owned());
                }
                None => list.extend(text_at(arguments, 2, row).map(str::to_owned)),
            }
        }
        texts.push(Some(list.join(delimiter)));
    }
    Made::column(texts)
}

fn to_array(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let elements = ElementType::of_array(&call.catalog, call.result)?;
    let one = |row: usize| -> Outcome<Option<Vec<u8>>> {
        let Some(text) = text_at(arguments, 0, row) else { return Ok(None) };
        let null = text_at(arguments, 2, row);
        let element = |part: &str| (Some(part) != null).then(|| part.as_bytes().to_vec());
        let parts: Vec<Option<Vec<u8>>> = match text_at(arguments, 1, row) {
            _ if text.is_empty() => Vec::new(),
            None => text.chars().map(|letter| element(letter.encode_utf8(&mut [0; 4]))).collect(),
            Some("") => vec![element(text)],
            Some(delimiter) => text.split(delimiter).map(element).collect(),
        };
        ArrayParts::of(parts).payload(&elements).map(Some)
    };
    Made::column((0..arguments[0].len()).map(one).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}
