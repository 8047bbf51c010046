//! How the locales of the GNU C library write money: a table, and the search in it.
//!
//! A row holds the values of `localeconv()` for a list of locales that share them; what
//! PostgreSQL makes of missing and of strange ones is in [`resolve`]. A locale that has one
//! value for UTF-8 and another for an older encoding (no euro sign, no narrow space) has both
//! rows: `fr_FR` is the older one, `fr_FR.UTF-8` the newer.
//! Sources: the locales of glibc 2.36 (`localedata/SUPPORTED`), each compiled and asked; the
//! first lines of `cash_out` in `src/backend/utils/adt/cash.c`, PostgreSQL 14 to 18.

use super::money::{MoneyFormat, SignLayout, SignPosition, Space};

/// The format of a locale, if the table has it.
pub(super) fn format(name: &str) -> Option<MoneyFormat> {
    let name = Name::split(name);
    if matches!(name.base, "C" | "POSIX") {
        return Some(resolve(&C));
    }
    let listed = |wanted: Name<'_>| {
        LOCALES.iter().find(|row| row.names.split(' ').any(|n| Name::split(n).is(&wanted)))
    };
    listed(name).or_else(|| listed(Name { codeset: "", ..name })).map(resolve)
}

/// A locale's name, `base.codeset@modifier`.
#[derive(Clone, Copy)]
struct Name<'a> {
    base: &'a str,
    codeset: &'a str,
    modifier: &'a str,
}

impl<'a> Name<'a> {
    fn split(name: &'a str) -> Self {
        let (rest, modifier) = name.split_once('@').unwrap_or((name, ""));
        let (base, codeset) = rest.split_once('.').unwrap_or((rest, ""));
        Self { base, codeset, modifier }
    }

    /// Encodings are the same whatever their case and punctuation: `UTF-8` and `utf8`.
    fn is(&self, other: &Name<'_>) -> bool {
        let letters = |codeset: &'_ str| -> String {
            let kept = codeset.chars().filter(char::is_ascii_alphanumeric);
            kept.map(|c| c.to_ascii_lowercase()).collect()
        };
        self.base == other.base
            && self.modifier == other.modifier
            && letters(self.codeset) == letters(other.codeset)
    }
}

/// The values of `localeconv()`.
struct Row {
    names: &'static str,
    currency_symbol: &'static str,
    mon_decimal_point: &'static str,
    mon_thousands_sep: &'static str,
    /// The first group's length, the only one that PostgreSQL looks at.
    mon_grouping: u8,
    frac_digits: u8,
    positive_sign: &'static str,
    /// `cs_precedes`, `sep_by_space` and `sign_posn`, for positive and for negative values.
    layout: [u8; 6],
}

/// Puts PostgreSQL's own values where a locale has none, or one it cannot use.
fn resolve(row: &Row) -> MoneyFormat {
    let decimal_point = match row.mon_decimal_point.as_bytes() {
        [single] => *single,
        _ => b'.',
    };
    let thousands_separator = match row.mon_thousands_sep {
        "" if decimal_point == b',' => ".",
        "" => ",",
        found => found,
    };
    let [p_precedes, p_space, p_position, n_precedes, n_space, n_position] = row.layout;
    MoneyFormat {
        currency_symbol: match row.currency_symbol {
            "" => b"$".into(),
            found => found.as_bytes().into(),
        },
        decimal_point,
        thousands_separator: thousands_separator.as_bytes().into(),
        group: if (1..=6).contains(&row.mon_grouping) { row.mon_grouping } else { 3 },
        fraction_digits: if row.frac_digits <= 10 { row.frac_digits } else { 2 },
        positive: layout(row.positive_sign, p_precedes, p_space, p_position),
        // No locale has another one.
        negative: layout("-", n_precedes, n_space, n_position),
    }
}

fn layout(sign: &'static str, precedes: u8, space: u8, position: u8) -> SignLayout {
    SignLayout {
        sign,
        position: match position {
            0 => SignPosition::Brackets,
            2 => SignPosition::Last,
            3 => SignPosition::BeforeSymbol,
            4 => SignPosition::AfterSymbol,
            _ => SignPosition::First,
        },
        symbol_first: precedes != 0,
        space: match space {
            1 => Space::AtNumber,
            2 => Space::AtSign,
            _ => Space::None,
        },
    }
}

#[expect(clippy::too_many_arguments, reason = "a row of the table below")]
const fn row(
    names: &'static str,
    currency_symbol: &'static str,
    mon_decimal_point: &'static str,
    mon_thousands_sep: &'static str,
    mon_grouping: u8,
    frac_digits: u8,
    positive_sign: &'static str,
    layout: [u8; 6],
) -> Row {
    Row {
        names,
        currency_symbol,
        mon_decimal_point,
        mon_thousands_sep,
        mon_grouping,
        frac_digits,
        positive_sign,
        layout,
    }
}

/// "C" says nothing about money; 127 (`CHAR_MAX`) is "not specified".
static C: Row = row("C POSIX", "", "", "", 0, 127, "", [127; 6]);

#[rustfmt::skip]
static LOCALES: &[Row] = &[
    row("aa_DJ so_DJ", "Fdj", ".", "\u{a0}", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("aa_DJ.UTF-8 so_DJ.UTF-8", "Fdj", ".", "\u{202f}", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("aa_ER aa_ER@saaho byn_ER gez_ER gez_ER@abegede ti_ER tig_ER", "Nfk", ".", ",", 3, 0, "", [1, 1, 1, 1, 1, 1]),
    row("aa_ET am_ET gez_ET gez_ET@abegede om_ET sid_ET so_ET ti_ET wal_ET", "Br", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("af_ZA en_ZA nr_ZA nso_ZA ss_ZA st_ZA tn_ZA ts_ZA ve_ZA xh_ZA zu_ZA", "R", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("agr_PE ayc_PE es_PE quz_PE", "S/", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("ak_GH", "GH₵", ".", ",", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("an_ES ast_ES ca_AD ca_ES.UTF-8 ca_ES@euro ca_ES@valencia ca_FR ca_IT de_DE.UTF-8 de_DE@euro dsb_DE es_ES.UTF-8 es_ES@euro fr_BE.UTF-8 fr_BE@euro fy_DE hr_HR.UTF-8 hsb_DE.UTF-8 lb_LU lt_LT.UTF-8 nds_DE nl_BE@euro pt_PT.UTF-8 pt_PT@euro sgs_LT sl_SI.UTF-8 sr_ME wa_BE.UTF-8 wa_BE@euro", "€", ",", ".", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("anp_IN ar_IN as_IN bhb_IN bho_IN bn_IN bo_IN brx_IN doi_IN en_IN gu_IN hi_IN hne_IN kn_IN kok_IN ks_IN ks_IN@devanagari mag_IN mai_IN mjw_IN ml_IN mni_IN mr_IN or_IN pa_IN raj_IN sa_IN sat_IN sd_IN sd_IN@devanagari ta_IN tcy_IN te_IN ur_IN", "₹", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("ar_AE", "د.إ.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_BH", "د.ب.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_DZ ber_DZ", "د.ج.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_EG", "ج.م.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_IQ", "د.ع.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_JO", "د.أ.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_KW", "د.ك.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_LB", "ل.ل.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_LY", "د.ل.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_MA", "د.م.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_OM", "ر.ع.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_QA", "ر.ق.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_SA", "ر.س", ".", "", 0, 2, "", [0, 1, 1, 0, 1, 1]),
    row("ar_SD", "ج.س.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_SS", "£", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_SY", "ل.س.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_TN", "د.ت.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("ar_YE", "ر.ي.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("az_AZ", "₼", ".", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("az_IR fa_IR", "ریال", "٫", "٬", 3, 0, "", [0, 1, 1, 0, 1, 1]),
    row("be_BY", "руб", ".", "\u{a0}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("be_BY.UTF-8 tg_TJ.UTF-8", "руб", ".", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("be_BY@latin", "Rub", ".", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("bem_ZM en_ZM yuw_PG", "K", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("ber_MA", "ⴷ.ⵎ.", ".", ",", 3, 3, "", [1, 1, 1, 1, 1, 2]),
    row("bg_BG", "лв.", ",", "\u{a0}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("bg_BG.UTF-8", "лв.", ",", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("bho_NP mai_NP ne_NP the_NP", "रू", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("bi_VU", "VT", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("bn_BD", "৳", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("bo_CN ug_CN zh_CN", "￥", ".", ",", 3, 2, "", [1, 0, 4, 1, 0, 4]),
    row("br_FR et_EE eu_FR fi_FI fr_FR fr_LU oc_FR sk_SK sv_FI", "EUR", ",", "\u{a0}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("br_FR.UTF-8 et_EE.UTF-8 eu_FR.UTF-8 fi_FI.UTF-8 fr_FR.UTF-8 fr_LU.UTF-8 ia_FR oc_FR.UTF-8 sk_SK.UTF-8 sv_FI.UTF-8", "€", ",", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("br_FR@euro et_EE.ISO-8859-15 eu_FR@euro fi_FI@euro fr_FR@euro fr_LU@euro sv_FI@euro", "€", ",", "\u{a0}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("bs_BA", "KM", ",", "\u{a0}", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("bs_BA.UTF-8", "KM", ",", "\u{202f}", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("ca_ES de_DE es_ES fr_BE hr_HR hsb_DE lt_LT pt_PT sl_SI wa_BE", "EUR", ",", ".", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("ce_RU cv_RU mhr_RU tt_RU tt_RU@iqtelif", "₽", ".", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("chr_US en_AG en_AU en_CA en_NZ en_US en_ZW es_US ik_CA iu_CA mi_NZ niu_NU niu_NZ shs_CA", "$", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("ckb_IQ", "د.ع", ".", ",", 3, 3, "+", [1, 1, 1, 1, 1, 2]),
    row("cmn_TW hak_TW lzh_TW nan_TW", "NT$", ".", ",", 4, 2, "", [1, 0, 1, 1, 0, 1]),
    row("crh_UA ru_UA.UTF-8", "₴", ".", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("cs_CZ", "Kč", ",", "\u{a0}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("cs_CZ.UTF-8", "Kč", ",", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("csb_PL pl_PL.UTF-8 szl_PL", "zł", ",", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("cy_GB en_GB gd_GB gv_GB kw_GB", "£", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("da_DK en_DK fo_FO kl_GL", "kr.", ",", ".", 3, 2, "", [1, 2, 4, 1, 2, 4]),
    row("de_AT", "EUR", ",", "\u{a0}", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("de_AT.UTF-8", "€", ",", "\u{202f}", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("de_AT@euro", "€", ",", "\u{a0}", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("de_BE de_LU", "EUR", ",", ".", 3, 2, "", [1, 1, 4, 1, 1, 4]),
    row("de_BE.UTF-8 de_BE@euro de_LU.UTF-8 de_LU@euro", "€", ",", ".", 3, 2, "", [1, 1, 4, 1, 1, 4]),
    row("de_CH fr_CH it_CH", "CHF", ".", "'", 3, 2, "", [1, 1, 4, 1, 1, 4]),
    row("de_CH.UTF-8 de_LI fr_CH.UTF-8 it_CH.UTF-8 wae_CH", "CHF", ".", "’", 3, 2, "", [1, 1, 4, 1, 1, 4]),
    row("de_IT eu_ES gl_ES it_IT", "EUR", ",", ".", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("de_IT.UTF-8 eu_ES.UTF-8 fur_IT gl_ES.UTF-8 gl_ES@euro it_IT.UTF-8 it_IT@euro lij_IT sc_IT", "€", ",", ".", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("dv_MV", "ރ.", ".", ",", 3, 2, "", [1, 1, 2, 1, 0, 1]),
    row("dz_BT", "Nu.", ".", ",", 3, 3, "", [1, 1, 4, 1, 1, 4]),
    row("el_CY el_GR el_GR@euro", "€", ",", ".", 3, 2, "", [0, 0, 1, 0, 0, 1]),
    row("en_BW", "P", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("en_HK yue_HK zh_HK", "HK$", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 0]),
    row("en_IE ga_IE mt_MT", "EUR", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("en_IE.UTF-8 en_IE@euro ga_IE.UTF-8 ga_IE@euro mt_MT.UTF-8", "€", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("en_IL he_IL.UTF-8", "₪", ".", ",", 3, 2, "", [1, 1, 2, 1, 1, 2]),
    row("en_NG ha_NG ig_NG yo_NG", "₦", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("en_PH", "PHP", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 0]),
    row("en_PH.UTF-8", "₱", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 0]),
    row("en_SC", "SR", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("en_SG zh_SG", "$", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 0]),
    row("eo", "¤", ",", "\u{202f}", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("es_AR es_CL es_CO es_EC es_UY", "$", ",", ".", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("es_BO", "Bs", ",", ".", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("es_CR", "C=", ",", "\u{a0}", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("es_CR.UTF-8", "₡", ",", "\u{202f}", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("es_CU", "$", ",", ".", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("es_DO", "RD$", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("es_GT", "Q", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("es_HN", "L", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("es_MX nhn_MX", "$", ".", " ", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("es_NI miq_NI", "C$", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("es_PA", "B/.", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("es_PR es_SV", "$", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("es_PY", "Gs.", ",", ".", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("es_VE", "Bs.", ",", ".", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("eu_ES@euro", "€", ",", ".", 3, 0, "", [1, 1, 1, 1, 1, 1]),
    row("ff_SN", "CFA", ".", ",", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("fil_PH tl_PH.UTF-8", "₱", ".", ",", 3, 2, "", [1, 0, 1, 1, 1, 1]),
    row("fr_CA", "$", ",", "\u{a0}", 3, 2, "", [0, 1, 1, 0, 1, 0]),
    row("fr_CA.UTF-8", "$", ",", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 0]),
    row("fy_NL li_BE li_NL nds_NL nl_BE.UTF-8 nl_NL.UTF-8 nl_NL@euro", "€", ",", ".", 3, 2, "", [1, 1, 1, 1, 2, 4]),
    row("he_IL", "ILS", ".", ",", 3, 2, "", [1, 1, 2, 1, 1, 2]),
    row("hif_FJ", "FJ$", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("ht_HT", "g", ",", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("hu_HU", "Ft", ",", ".", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("hy_AM", "֏", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("hy_AM.ARMSCII-8", "AMD", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("id_ID", "Rp", ",", ".", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("is_IS", "kr", ",", ".", 3, 0, "", [0, 1, 1, 0, 1, 1]),
    row("ja_JP", "￥", ".", ",", 3, 0, "", [1, 0, 4, 1, 0, 4]),
    row("ka_GE", "GEL", ",", ".", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("ka_GE.UTF-8", "₾", ",", ".", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("kab_DZ", "DA", ",", "", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("kk_KZ", "KZT", ",", "\u{a0}", 3, 2, "", [0, 2, 1, 0, 1, 1]),
    row("kk_KZ.UTF-8", "₸", ",", "\u{202f}", 3, 2, "", [0, 2, 1, 0, 1, 1]),
    row("km_KH", "៛", ".", ",", 3, 2, "", [0, 0, 1, 0, 0, 1]),
    row("ko_KR", "₩", ".", ",", 3, 0, "", [1, 0, 1, 1, 0, 4]),
    row("ko_KR.EUC-KR", "KRW", ".", ",", 3, 0, "", [1, 0, 1, 1, 0, 4]),
    row("ku_TR tr_CY tr_TR", "TL", ",", ".", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("ku_TR.UTF-8 tr_CY.UTF-8 tr_TR.UTF-8", "₺", ",", ".", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("ky_KG", "сом", ".", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("lg_UG", "USh", ".", ",", 3, 2, "", [0, 0, 1, 0, 0, 1]),
    row("ln_CD", "FC", ",", ".", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("lo_LA", "₭", ".", ",", 3, 2, "", [1, 2, 4, 1, 2, 4]),
    row("lv_LV", "EUR", ",", "\u{a0}", 3, 2, "", [1, 1, 3, 1, 1, 3]),
    row("lv_LV.UTF-8", "€", ",", "\u{202f}", 3, 2, "", [1, 1, 3, 1, 1, 3]),
    row("mfe_MU", "₨", ".", "\u{202f}", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("mg_MG", "Ar", ",", "\u{a0}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("mg_MG.UTF-8", "Ar", ",", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("mk_MK", "ден", ",", "\u{a0}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("mk_MK.UTF-8", "ден", ",", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("mn_MN", "₮", ".", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("mnw_MM my_MM", "K", ".", ",", 3, 2, "", [0, 0, 1, 0, 0, 1]),
    row("ms_MY", "RM", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 0]),
    row("nan_TW@latin zh_TW", "NT$", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("nb_NO", "kr", ",", "\u{a0}", 3, 2, "", [1, 0, 4, 1, 0, 4]),
    row("nb_NO.UTF-8", "kr", ",", "\u{202f}", 3, 2, "", [1, 0, 4, 1, 0, 4]),
    row("nl_AW", "Afl.", ",", ".", 3, 2, "", [1, 1, 1, 1, 2, 4]),
    row("nl_BE nl_NL", "EUR", ",", ".", 3, 2, "", [1, 1, 1, 1, 2, 4]),
    row("nn_NO", "kr", ",", "\u{a0}", 3, 2, "", [1, 1, 1, 1, 0, 3]),
    row("nn_NO.UTF-8", "kr", ",", "\u{202f}", 3, 2, "", [1, 1, 1, 1, 0, 3]),
    row("om_KE so_KE sw_KE", "Ksh", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("os_RU ru_RU.UTF-8 sah_RU", "₽", ",", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("pa_PK ur_PK", "Rs", ".", ",", 3, 2, "", [1, 1, 2, 1, 0, 1]),
    row("pap_AW pap_CW", "ƒ", ",", "\u{202f}", 3, 2, "", [1, 1, 1, 1, 1, 2]),
    row("pl_PL", "zł", ",", "\u{a0}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("ps_AF", "؋", "٫", "٬", 3, 0, "", [0, 1, 1, 0, 1, 1]),
    row("pt_BR", "R$", ",", ".", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("rif_MA", "dh", ".", "", 3, 2, "", [1, 0, 1, 0, 0, 1]),
    row("ro_RO", "Lei", ",", ".", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("ru_RU", "руб", ",", "\u{a0}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("ru_UA", "грн", ".", "\u{a0}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("rw_RW", "FRw", ",", ".", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("se_NO", "kr", ",", ".", 3, 2, "", [1, 0, 4, 1, 0, 4]),
    row("shn_MM", "Ks", ".", ",", 3, 2, "", [0, 0, 1, 0, 0, 1]),
    row("si_LK ta_LK", "රු", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("sm_WS", "WS$", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("so_SO", "S", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("sq_AL", "L", ",", ".", 3, 3, "", [1, 0, 1, 1, 0, 1]),
    row("sq_MK", "den", ",", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("sr_RS", "дин", ",", ".", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("sr_RS@latin", "din", ",", ".", 3, 0, "", [1, 1, 1, 1, 1, 1]),
    row("sv_SE", "kr", ",", "\u{a0}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("sv_SE.UTF-8", "kr", ",", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("sw_TZ", "TSh", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("syr", "¤", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("tg_TJ", "руб", ".", " ", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("th_TH", "฿", ".", ",", 3, 2, "", [1, 2, 4, 1, 2, 4]),
    row("tk_TM", "MANAT", ".", ",", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("tl_PH", "PHP", ".", ",", 3, 2, "", [1, 0, 1, 1, 1, 1]),
    row("to_TO", "T$", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("tpi_PG", "K", ".", ",", 3, 2, "", [1, 1, 1, 1, 1, 1]),
    row("uk_UA", "грн.", ",", "\u{a0}", 3, 2, "", [0, 2, 1, 0, 1, 1]),
    row("uk_UA.UTF-8", "грн.", ",", "\u{202f}", 3, 2, "", [0, 2, 1, 0, 1, 1]),
    row("unm_US", "$", ".", "\u{202f}", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("uz_UZ", "so'm", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("uz_UZ.UTF-8", "soʻm", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("uz_UZ@cyrillic", "сўм", ".", ",", 3, 2, "", [1, 0, 1, 1, 0, 1]),
    row("vi_VN", "₫", ",", ".", 3, 0, "", [0, 0, 1, 1, 0, 1]),
    row("wo_SN", "CFA", ",", "\u{202f}", 3, 2, "", [0, 1, 1, 0, 1, 1]),
    row("yi_US", "$", ".", ",", 3, 2, "", [1, 1, 2, 1, 1, 2]),
];

#[cfg(test)]
mod tests {
    use super::super::money::{MoneyFormat, write_money};
    use proptest::prelude::*;

    fn money(locale: &str, amount: i64) -> String {
        let mut out = Vec::new();
        let format = MoneyFormat::for_locale(locale).unwrap();
        write_money(&amount.to_le_bytes(), &format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn c_means_dollars() {
        for name in ["C", "POSIX", "C.UTF-8", "en_US.UTF-8", "en_US.utf8", "en_US"] {
            assert_eq!(money(name, 123_456_789), "$1,234,567.89", "{name}");
            assert_eq!(money(name, -5), "-$0.05", "{name}");
        }
        assert_eq!(money("C", i64::MIN), "-$92,233,720,368,547,758.08");
    }

    #[test]
    fn every_locale_has_its_own_ways() {
        assert_eq!(money("de_DE.UTF-8", -123_456), "-1.234,56 €");
        assert_eq!(money("de_DE.ISO-8859-1", -123_456), "-1.234,56 EUR");
        assert_eq!(money("fr_FR.utf8", 123_456), "1\u{202f}234,56 €");
        assert_eq!(money("en_GB.UTF-8", -123_456), "-£1,234.56");
        assert_eq!(money("ja_JP.UTF-8", -123_456), "￥-123,456");
        assert_eq!(money("de_CH.UTF-8", -123_456), "CHF- 1’234.56");
        assert_eq!(money("hi_IN", 123_456_789), "₹1,234,567.89");
    }

    proptest! {
        #[test]
        fn the_digits_are_the_amount_in_every_locale(amount: i64, bits in 0u32..64) {
            let amount = amount >> bits;
            for row in super::LOCALES.iter().chain([&super::C]) {
                let mut out = Vec::new();
                write_money(&amount.to_le_bytes(), &super::resolve(row), &mut out).unwrap();
                out.retain(u8::is_ascii_digit);
                let digits: u64 = str::from_utf8(&out).unwrap().parse().unwrap();
                prop_assert_eq!(digits, amount.unsigned_abs());
            }
        }

        #[test]
        fn arbitrary_names_and_bytes_never_panic(
            name in "([a-z]{2}_[A-Z]{2})?\\PC{0,9}",
            value in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let format = MoneyFormat::for_locale(&name).or(MoneyFormat::for_locale("C")).unwrap();
            let _ = write_money(&value, &format, &mut Vec::new());
        }
    }

    #[test]
    fn a_format_is_converted_as_a_whole_or_not_at_all() {
        let latin1 = |text: &[u8]| -> Option<Vec<u8>> {
            let text = std::str::from_utf8(text).ok()?;
            text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
        };
        let pounds = MoneyFormat::for_locale("en_GB.UTF-8").unwrap().converted(latin1).unwrap();
        let mut out = Vec::new();
        write_money(&123_456_i64.to_le_bytes(), &pounds, &mut out).unwrap();
        assert_eq!(out, b"\xA31,234.56");
        assert_eq!(MoneyFormat::for_locale("de_DE.UTF-8").unwrap().converted(latin1), None);
    }

    #[test]
    fn an_unknown_locale_has_no_format() {
        assert!(MoneyFormat::for_locale("tlh_QO.UTF-8").is_none());
        assert!(MoneyFormat::for_locale("").is_none());
        assert!(MoneyFormat::for_locale("en_US@klingon").is_none());
    }
}
