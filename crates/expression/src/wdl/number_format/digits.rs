//! Numbers as decimal digits, which are shifted and rounded without conversion to a double.

use super::super::number::Number;

/// A number as decimal digits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Digits {
    pub negative: bool,
    /// Without leading zeros, but at least `0`.
    pub whole: String,
    pub fraction: String,
}

impl Digits {
    pub(super) fn of(number: Number) -> Self {
        let text = match number {
            Number::Int(int) => int.to_string(),
            Number::Float(float) => format!("{float}"),
            Number::Decimal(decimal) => decimal.to_string(),
        };
        let (negative, plain) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
        Self {
            negative,
            whole: whole.into(),
            fraction: fraction.into(),
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        let zeros = |text: &str| text.bytes().all(|byte| byte == b'0');
        zeros(&self.whole) && zeros(&self.fraction)
    }

    /// Moves the point by this number of places to the right; a negative number moves it to the left.
    pub(super) fn shifted(&self, places: i32) -> Self {
        let mut all = format!("{}{}", self.whole, self.fraction);
        let point = i64::try_from(self.whole.len()).unwrap_or(0) + i64::from(places);
        if point <= 0 {
            let zeros = usize::try_from(-point).unwrap_or(0) + 1;
            all = format!("{}{all}", "0".repeat(zeros));
        }
        let point = usize::try_from(point.max(1)).unwrap_or(1);
        while all.len() < point {
            all.push('0');
        }
        let (whole, fraction) = all.split_at_checked(point).unwrap_or((all.as_str(), ""));
        let whole = match whole.trim_start_matches('0') {
            "" => "0",
            trimmed => trimmed,
        };
        Self {
            negative: self.negative,
            whole: whole.into(),
            fraction: fraction.into(),
        }
    }

    /// Rounds half away from zero to this number of decimals, and pads with zeros.
    pub(super) fn rounded(&self, decimals: usize) -> Self {
        let mut fraction = self.fraction.clone();
        if fraction.len() <= decimals {
            let missing = decimals - fraction.len();
            fraction.push_str(&"0".repeat(missing));
            return Self {
                fraction,
                ..self.clone()
            };
        }
        let up = fraction
            .as_bytes()
            .get(decimals)
            .is_some_and(|digit| *digit >= b'5');
        fraction.truncate(decimals);
        let mut digits: Vec<u8> = self.whole.bytes().chain(fraction.bytes()).collect();
        if up {
            let mut carry = true;
            for digit in digits.iter_mut().rev() {
                if *digit == b'9' {
                    *digit = b'0';
                } else {
                    *digit += 1;
                    carry = false;
                    break;
                }
            }
            if carry {
                digits.insert(0, b'1');
            }
        }
        let text = String::from_utf8(digits).unwrap_or_default();
        let (whole, fraction) = text
            .split_at_checked(text.len() - decimals)
            .unwrap_or_default();
        Self {
            negative: self.negative,
            whole: whole.into(),
            fraction: fraction.into(),
        }
    }

    /// Returns the power of ten of the first digit, and the number with one digit before the point.
    pub(super) fn scientific(&self) -> (i32, Self) {
        if self.is_zero() {
            return (0, self.clone());
        }
        let exponent = if self.whole == "0" {
            let zeros = self
                .fraction
                .bytes()
                .take_while(|digit| *digit == b'0')
                .count();
            -1 - i32::try_from(zeros).unwrap_or(0)
        } else {
            i32::try_from(self.whole.len()).unwrap_or(1) - 1
        };
        (exponent, self.shifted(-exponent))
    }
}

/// Writes digits in groups of three.
pub(super) fn grouped(whole: &str, separator: &str) -> String {
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push_str(separator);
        }
        out.push(digit);
    }
    out
}
