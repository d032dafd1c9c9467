//! Cultures: names of months and days and the separators in numbers, from the locales of the C library. The date
//! patterns are those of .NET for the cultures in the table, and derived for the others.

use pure_rust_locales::{Locale, locale_match};

/// A culture; `en-US` unless an expression names another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Culture {
    locale: Locale,
    /// Whether this is .NET's invariant culture.
    invariant: bool,
}

/// A standard date or time pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    ShortDate,
    LongDate,
    ShortTime,
    LongTime,
    MonthDay,
    YearMonth,
}

/// The columns: culture, short date, long date, short time, month and day, year and month.
const TABLE: &[&str] = &[
    "en_US|M/d/yyyy|dddd, MMMM d, yyyy|h:mm tt|MMMM d|MMMM yyyy",
    "en_CA|yyyy-MM-dd|dddd, MMMM d, yyyy|h:mm tt|MMMM d|MMMM yyyy",
    "en_AU|d/M/yyyy|dddd, d MMMM yyyy|h:mm tt|d MMMM|MMMM yyyy",
    "en_IN|dd-MM-yyyy|dddd, d MMMM, yyyy|h:mm tt|d MMMM|MMMM yyyy",
    "cs_CZ|dd.MM.yyyy|dddd d. MMMM yyyy|H:mm|d. MMMM|MMMM yyyy",
    "da_DK|dd.MM.yyyy|dddd 'den' d. MMMM yyyy|HH.mm|d. MMMM|MMMM yyyy",
    "de_DE|dd.MM.yyyy|dddd, d. MMMM yyyy|HH:mm|d. MMMM|MMMM yyyy",
    "de_AT|dd.MM.yyyy|dddd, d. MMMM yyyy|HH:mm|d. MMMM|MMMM yyyy",
    "de_CH|dd.MM.yyyy|dddd, d. MMMM yyyy|HH:mm|d. MMMM|MMMM yyyy",
    "es_ES|d/M/yyyy|dddd, d 'de' MMMM 'de' yyyy|H:mm|d 'de' MMMM|MMMM 'de' yyyy",
    "es_MX|dd/MM/yyyy|dddd, d 'de' MMMM 'de' yyyy|HH:mm|d 'de' MMMM|MMMM 'de' yyyy",
    "fi_FI|d.M.yyyy|dddd d. MMMM yyyy|H.mm|d. MMMM|MMMM yyyy",
    "fr_CA|yyyy-MM-dd|dddd d MMMM yyyy|HH 'h' mm|d MMMM|MMMM yyyy",
    "is_IS|d.M.yyyy|dddd, d. MMMM yyyy|HH:mm|d. MMMM|MMMM yyyy",
    "ja_JP|yyyy/MM/dd|yyyy年M月d日dddd|H:mm|M月d日|yyyy年M月",
    "ko_KR|yyyy. M. d.|yyyy년 M월 d일 dddd|tt h:mm|M월 d일|yyyy년 M월",
    "nb_NO|dd.MM.yyyy|dddd d. MMMM yyyy|HH:mm|d. MMMM|MMMM yyyy",
    "nl_NL|dd-MM-yyyy|dddd d MMMM yyyy|HH:mm|d MMMM|MMMM yyyy",
    "pl_PL|dd.MM.yyyy|dddd, d MMMM yyyy|HH:mm|d MMMM|MMMM yyyy",
    "pt_BR|dd/MM/yyyy|dddd, d 'de' MMMM 'de' yyyy|HH:mm|d 'de' MMMM|MMMM 'de' yyyy",
    "pt_PT|dd/MM/yyyy|dddd, d 'de' MMMM 'de' yyyy|HH:mm|d 'de' MMMM|MMMM 'de' yyyy",
    "ru_RU|dd.MM.yyyy|dddd, d MMMM yyyy 'г'.|HH:mm|d MMMM|MMMM yyyy 'г'.",
    "sv_SE|yyyy-MM-dd|dddd d MMMM yyyy|HH:mm|d MMMM|MMMM yyyy",
    "tr_TR|d.MM.yyyy|d MMMM yyyy dddd|HH:mm|d MMMM|MMMM yyyy",
    "zh_CN|yyyy/M/d|yyyy年M月d日dddd|HH:mm|M月d日|yyyy年M月",
    "zh_TW|yyyy/M/d|yyyy年M月d日 dddd|tt h:mm|M月d日|yyyy年M月",
];

/// Regions for language codes without a region, if the region is not the language's letters in upper case.
const REGIONS: &str =
    "en_US da_DK cs_CZ sv_SE ja_JP ko_KR zh_CN nb_NO el_GR he_IL uk_UA vi_VN hi_IN et_EE";

impl Culture {
    pub(crate) const EN_US: Self = Self {
        locale: Locale::en_US,
        invariant: false,
    };
    /// The invariant culture: English with .NET's own date patterns; its code is empty.
    pub(crate) const INVARIANT: Self = Self {
        locale: Locale::en_US,
        invariant: true,
    };

    /// Finds the culture of an RFC 4646 code such as `fr-FR`; the case is ignored.
    pub(crate) fn find(code: &str) -> Option<Self> {
        if code.is_empty() {
            return Some(Self::INVARIANT);
        }
        let mut parts = code.trim().split(['-', '_']);
        let language = parts.next()?.to_ascii_lowercase();
        let last = parts.next_back().map(str::to_ascii_uppercase);
        let region = match last {
            Some(region) => region,
            None => REGIONS
                .split(' ')
                .filter_map(|known| known.split_once('_'))
                .find(|(known, _)| *known == language)
                .map_or_else(
                    || language.to_ascii_uppercase(),
                    |(_, region)| region.into(),
                ),
        };
        let locale = Locale::try_from(format!("{language}_{region}").as_str()).ok()?;
        let invariant = false;
        Some(Self { locale, invariant })
    }

    /// Returns the names of the months. Some languages inflect them next to a day.
    pub(crate) fn months(self, has_day: bool) -> &'static [&'static str] {
        let plain = locale_match!(self.locale => LC_TIME::MON);
        let alone = locale_match!(self.locale => LC_TIME::ALT_MON);
        match alone {
            Some(alone) if !has_day => alone,
            _ => plain,
        }
    }

    pub(crate) fn short_months(self) -> &'static [&'static str] {
        locale_match!(self.locale => LC_TIME::ABMON)
    }

    /// Returns the names of the days, from Sunday.
    pub(crate) fn days(self) -> &'static [&'static str] {
        locale_match!(self.locale => LC_TIME::DAY)
    }

    /// Returns the short names of the days, from Sunday.
    pub(crate) fn short_days(self) -> &'static [&'static str] {
        locale_match!(self.locale => LC_TIME::ABDAY)
    }

    /// Returns what `tt` writes before and after noon; AM and PM if the language has no words for them.
    pub(crate) fn am_pm(self) -> (&'static str, &'static str) {
        match locale_match!(self.locale => LC_TIME::AM_PM) {
            [am, pm] if !am.is_empty() && !pm.is_empty() => (am, pm),
            _ => ("AM", "PM"),
        }
    }

    /// Returns the columns of the table for this culture.
    fn patterns(self) -> Option<[&'static str; 5]> {
        if self.invariant {
            let long = "dddd, dd MMMM yyyy";
            return Some(["MM/dd/yyyy", long, "HH:mm", "MMMM dd", "yyyy MMMM"]);
        }
        let name = self.locale.to_string();
        let row = TABLE
            .iter()
            .find_map(|row| row.strip_prefix(name.as_str())?.strip_prefix('|'))?;
        let mut pieces = row.split('|');
        let mut next = || pieces.next().unwrap_or_default();
        Some([next(), next(), next(), next(), next()])
    }

    /// Returns a standard date pattern in the letters of custom patterns.
    pub(crate) fn pattern(self, wanted: Pattern) -> String {
        let derived = self.derived_short_date();
        let default = [
            derived.as_str(),
            "dddd d MMMM yyyy",
            "HH:mm",
            "d MMMM",
            "MMMM yyyy",
        ];
        let [short, long, time, month_day, year_month] = self.patterns().unwrap_or(default);
        match wanted {
            Pattern::ShortDate => short.into(),
            Pattern::LongDate => long.into(),
            Pattern::ShortTime => time.into(),
            Pattern::LongTime => {
                let separator = self.time_separator();
                time.replacen("mm", &format!("mm{separator}ss"), 1)
            }
            Pattern::MonthDay => month_day.into(),
            Pattern::YearMonth => year_month.into(),
        }
    }

    /// Returns the short date of the C library in .NET's letters.
    fn derived_short_date(self) -> String {
        let mut letters = locale_match!(self.locale => LC_TIME::D_FMT).chars();
        let mut pattern = String::new();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                pattern.push(letter);
                continue;
            }
            let directive = letters.next();
            let short = directive == Some('-');
            let directive = if short { letters.next() } else { directive };
            pattern.push_str(match (directive, short) {
                (Some('d'), false) => "dd",
                (Some('d'), true) | (Some('e'), _) => "d",
                (Some('m'), false) => "MM",
                (Some('m'), true) => "M",
                (Some('Y' | 'y'), _) => "yyyy",
                (Some('F'), _) => "yyyy-MM-dd",
                _ => return "dd/MM/yyyy".into(),
            });
        }
        pattern
    }

    /// Returns the character that replaces `/` in a pattern.
    pub(crate) fn date_separator(self) -> char {
        let pattern = self.pattern(Pattern::ShortDate);
        let separator = pattern.chars().find(|letter| !letter.is_ascii_alphabetic());
        separator.unwrap_or('/')
    }

    /// Returns the character that replaces `:` in a pattern.
    pub(crate) fn time_separator(self) -> char {
        match self.patterns() {
            Some([_, _, time, ..]) if time.contains('.') => '.',
            _ => ':',
        }
    }

    pub(crate) fn decimal_point(self) -> &'static str {
        locale_match!(self.locale => LC_NUMERIC::DECIMAL_POINT)
    }

    /// Returns the separator between groups of three digits.
    pub(crate) fn group_separator(self) -> &'static str {
        let separator = locale_match!(self.locale => LC_NUMERIC::THOUSANDS_SEP);
        if separator.is_empty() {
            return locale_match!(self.locale => LC_MONETARY::MON_THOUSANDS_SEP);
        }
        separator
    }

    pub(crate) fn currency_symbol(self) -> &'static str {
        if self.invariant {
            return "¤";
        }
        locale_match!(self.locale => LC_MONETARY::CURRENCY_SYMBOL)
    }

    pub(crate) fn currency_decimals(self) -> usize {
        let digits = locale_match!(self.locale => LC_MONETARY::FRAC_DIGITS);
        usize::try_from(digits).unwrap_or(2).min(9)
    }

    /// Returns whether the symbol precedes the number, and whether a space is between them.
    pub(crate) fn currency_layout(self) -> (bool, bool) {
        (
            locale_match!(self.locale => LC_MONETARY::P_CS_PRECEDES) == 1,
            locale_match!(self.locale => LC_MONETARY::P_SEP_BY_SPACE) > 0,
        )
    }

    /// Returns true if a space is between a number and `%`.
    pub(crate) fn percent_space(self) -> bool {
        let name = self.locale.to_string();
        !["en_", "es_MX", "it_", "ja_", "ko_", "nl_", "pt_", "zh_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_without_case_or_region() {
        assert_eq!(Culture::find("en-us"), Some(Culture::EN_US));
        assert_eq!(Culture::find("FR"), Culture::find("fr-FR"));
        assert_eq!(Culture::find("xx-YY"), None);
        assert_eq!(Culture::find(""), Some(Culture::INVARIANT));
    }

    #[test]
    fn derived_patterns() {
        let short = |code: &str| Culture::find(code).unwrap().pattern(Pattern::ShortDate);
        assert_eq!(short("fr-FR"), "dd/MM/yyyy");
        assert_eq!(short("en-GB"), "dd/MM/yyyy");
        assert_eq!(short("hu-HU"), "yyyy-MM-dd");
        let separator = |code: &str| Culture::find(code).unwrap().date_separator();
        assert_eq!(separator("de-DE"), '.');
        assert_eq!(separator("en-US"), '/');
    }
}
