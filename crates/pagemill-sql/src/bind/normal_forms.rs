//! `normalize(x, NFC)` and `x IS NFC NORMALIZED`: forms of the grammar that call functions with the form's name as a text.
//!
//! Source: `func_expr_common_subexpr`, `unicode_normal_form` and `IS NORMALIZED` in `src/backend/parser/gram.y`, PostgreSQL 14 to 18.

use datafusion::logical_expr::Expr;
use sqlparser::ast::{
    Expr as Syntax, Function, FunctionArg, FunctionArgExpr, FunctionArguments, NormalizationForm,
    ObjectNamePart,
};

use super::Binder;
use super::expressions::truth_value;
use super::scope::FORMS;
use crate::error::{Result, unsupported};
use crate::typed::Typed;

impl Binder<'_> {
    /// `normalize` without quotation marks, which takes a word for the form, or none for NFC; `None` for any other call.
    pub(super) fn normalized(&mut self, name: &str, call: &Function) -> Result<Option<Typed>> {
        let is_form = matches!(
            &call.name.0[..],
            [ObjectNamePart::Identifier(ident)] if ident.quote_style.is_none()
        );
        if name != "normalize" || !is_form {
            return Ok(None);
        }
        let FunctionArguments::List(list) = &call.args else { return unsupported("normalize") };
        let is_plain = call.over.is_none()
            && call.filter.is_none()
            && call.within_group.is_empty()
            && list.clauses.is_empty()
            && list.duplicate_treatment.is_none();
        let plain = |argument: &FunctionArg| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        };
        let arguments = list.args.iter().map(plain).collect::<Option<Vec<Syntax>>>();
        let (text, form) = match &arguments.unwrap_or_default()[..] {
            [text] if is_plain => (text.clone(), "NFC".to_owned()),
            [text, Syntax::Identifier(form)]
                if is_plain
                    && form.quote_style.is_none()
                    && FORMS.contains(&&*form.value.to_ascii_lowercase()) =>
            {
                (text.clone(), form.value.to_ascii_uppercase())
            }
            _ => return unsupported("this form of normalize"),
        };
        let text = self.expr(&text)?;
        self.call("normalize", vec![text, Typed::unknown(Some(form))]).map(Some)
    }

    /// `x IS NOT NFC NORMALIZED`.
    pub(super) fn is_normalized(
        &mut self,
        text: &Syntax,
        form: Option<&NormalizationForm>,
        negated: bool,
    ) -> Result<Typed> {
        let form = form.unwrap_or(&NormalizationForm::NFC).to_string(); // default: of the grammar
        let text = self.expr(text)?;
        let is = self.call("is_normalized", vec![text, Typed::unknown(Some(form))])?;
        Ok(match negated {
            true => truth_value(Expr::Not(Box::new(is.expr))),
            false => is,
        })
    }
}
