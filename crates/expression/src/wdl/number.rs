//! Numbers: exact 64-bit integers, doubles and decimals, with checked arithmetic. Integers and decimals never wrap; a
//! double may become infinite.

use crate::Value;
use rust_decimal::Decimal;
use std::cmp::Ordering;

/// A number of one of the three kinds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
    Decimal(Decimal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArithmeticError {
    Overflow,
    DivisionByZero,
}

impl Number {
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Int(int) => Some(Self::Int(*int)),
            Value::Float(float) => Some(Self::Float(*float)),
            Value::Decimal(decimal) => Some(Self::Decimal(**decimal)),
            _ => None,
        }
    }

    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
            Self::Decimal(decimal) => decimal.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    pub(crate) fn to_decimal(self) -> Option<Decimal> {
        match self {
            Self::Int(int) => Some(Decimal::from(int)),
            Self::Float(float) => Decimal::try_from(float).ok(),
            Self::Decimal(decimal) => Some(decimal),
        }
    }

    fn is_zero(self) -> bool {
        match self {
            Self::Int(int) => int == 0,
            Self::Float(float) => float == 0.0,
            Self::Decimal(decimal) => decimal.is_zero(),
        }
    }

    /// Computes `self op other`. Integers stay integers (a division drops the remainder). If one operand is a decimal,
    /// the result is a decimal; otherwise it is a double.
    pub(crate) fn compute(self, op: Op, other: Self) -> Result<Self, ArithmeticError> {
        if matches!(op, Op::Div | Op::Rem) && other.is_zero() {
            return Err(ArithmeticError::DivisionByZero);
        }
        let result = match (self, other) {
            (Self::Int(a), Self::Int(b)) => ints(a, op, b).map(Self::Int),
            (Self::Decimal(_), _) | (_, Self::Decimal(_)) => {
                match (self.to_decimal(), other.to_decimal()) {
                    (Some(a), Some(b)) => decimals(a, op, b).map(Self::Decimal),
                    _ => None,
                }
            }
            _ => Some(Self::Float(floats(self.to_f64(), op, other.to_f64()))),
        };
        result.ok_or(ArithmeticError::Overflow)
    }

    /// Compares two numbers of any kinds; `None` only for a double that is not a number.
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(&b)),
            (Self::Int(a), Self::Float(b)) => compare_int_float(a, b),
            (Self::Float(a), Self::Int(b)) => compare_int_float(b, a).map(Ordering::reverse),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(&b),
            (Self::Decimal(_), _) | (_, Self::Decimal(_)) => {
                match (self.to_decimal(), other.to_decimal()) {
                    (Some(a), Some(b)) => Some(a.cmp(&b)),
                    _ => self.to_f64().partial_cmp(&other.to_f64()),
                }
            }
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Int(int) => Self::Int(int),
            Number::Float(float) => Self::Float(float),
            Number::Decimal(decimal) => Self::from(decimal),
        }
    }
}

fn ints(a: i64, op: Op, b: i64) -> Option<i64> {
    match op {
        Op::Add => a.checked_add(b),
        Op::Sub => a.checked_sub(b),
        Op::Mul => a.checked_mul(b),
        Op::Div => a.checked_div(b),
        Op::Rem => Some(a.checked_rem(b).unwrap_or(0)),
    }
}

fn floats(a: f64, op: Op, b: f64) -> f64 {
    match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
        Op::Rem => a % b,
    }
}

fn decimals(a: Decimal, op: Op, b: Decimal) -> Option<Decimal> {
    match op {
        Op::Add => a.checked_add(b),
        Op::Sub => a.checked_sub(b),
        Op::Mul => a.checked_mul(b),
        Op::Div => a.checked_div(b),
        Op::Rem => a.checked_rem(b),
    }
}

/// Compares exactly: an integer above 2^53 is not rounded to a double first.
#[allow(clippy::cast_possible_truncation)]
fn compare_int_float(int: i64, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        None
    } else if float >= 9_223_372_036_854_775_808.0 {
        Some(Ordering::Less)
    } else if float < -9_223_372_036_854_775_808.0 {
        Some(Ordering::Greater)
    } else {
        let whole = float.trunc();
        let by_whole = int.cmp(&(whole as i64));
        Some(by_whole.then_with(|| {
            0.0_f64
                .partial_cmp(&(float - whole))
                .unwrap_or(Ordering::Equal)
        }))
    }
}

/// Returns a double as .NET prints it: the shortest digits that are parsed as the same double, `5` for 5.0, an exponent
/// from 1E+15 on and below 0.0001.
pub(crate) fn float_text(float: f64) -> String {
    if float == 0.0 {
        return "0".into();
    }
    if !float.is_finite() {
        return windlass_value::not_finite(float).into();
    }
    let magnitude = float.abs();
    if (1e-4..1e15).contains(&magnitude) {
        return format!("{float}");
    }
    let scientific = format!("{float:E}");
    match scientific.split_once('E') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(rest) => ('-', rest),
                None => ('+', exponent),
            };
            format!("{digits}E{sign}{exponent:0>2}")
        }
        None => scientific,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_where_doubles_are_not() {
        let large = (1_i64 << 53) + 1;
        let compare = Number::Int(large).compare(Number::Float(9_007_199_254_740_992.0));
        assert_eq!(compare, Some(Ordering::Greater));
        let compare = Number::Float(-0.5).compare(Number::Int(0));
        assert_eq!(compare, Some(Ordering::Less));
        let compare = Number::Int(i64::MAX).compare(Number::Float(9.3e18));
        assert_eq!(compare, Some(Ordering::Less));
    }

    #[test]
    fn nothing_wraps() {
        let trouble = Number::Int(i64::MIN).compute(Op::Div, Number::Int(-1));
        assert_eq!(trouble.err(), Some(ArithmeticError::Overflow));
        let trouble = Number::Float(1.0).compute(Op::Div, Number::Int(0));
        assert_eq!(trouble.err(), Some(ArithmeticError::DivisionByZero));
        let infinite = Number::Float(1e308).compute(Op::Mul, Number::Float(1e10));
        assert_eq!(infinite.map(Number::to_f64), Ok(f64::INFINITY));
    }

    #[test]
    fn printed_as_dotnet_does() {
        for (float, text) in [
            (5.0, "5"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1e15, "1E+15"),
            (1.5e-5, "1.5E-05"),
            (123_456_789_012_345.0, "123456789012345"),
            (0.0001, "0.0001"),
            (1e300, "1E+300"),
        ] {
            assert_eq!(float_text(float), text);
        }
    }
}
