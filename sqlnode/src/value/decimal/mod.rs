//! DECIMAL: exact decimal numbers of up to 65 digits, 30 of them after the point.
//!
//! Role: MySQL's fixed-point arithmetic. A number is an unscaled whole number and a scale; up to 38 digits it
//! is one 128-bit integer, beyond that a vector of limbs ([`limbs`]). Each number has exactly one of the two
//! forms, so that equality of the parts is equality of number and scale.
//!
//! Rounding is half away from zero everywhere. Results may carry up to [`DIGITS_MAX`] digits while an
//! expression is computed, as in MySQL, where a quotient has more digits than it shows: `1/3*3` prints
//! `1.0000`. The caller rounds a result to the scale of its type before it is shown or stored.
//!
//! The stored form ([`Decimal::encode`]) is MySQL's: fixed length for a precision and scale, and memcmp of
//! two stored numbers orders them.

mod encode;
mod limbs;
mod text;

pub use encode::encoded_len;
pub use text::ParsedDecimal;

use std::cmp::Ordering;

/// The most digits of a DECIMAL column.
pub const PRECISION_MAX: u8 = 65;
/// The most digits after the point.
pub const SCALE_MAX: u8 = 30;
/// The most digits of an intermediate result.
pub const DIGITS_MAX: usize = 81;
/// What div_precision_increment is unless a session says otherwise.
pub const DIV_PRECISION_INCREMENT: u8 = 4;

/// Numbers below this are kept in one integer.
const SMALL_LIMIT: u128 = 10u128.pow(38);

/// An exact decimal number.
#[derive(Clone, PartialEq, Eq)]
pub struct Decimal(Repr);

#[derive(Clone, PartialEq, Eq)]
enum Repr {
    /// Below 10^38 in magnitude: `hi` and `lo` are the halves of an i128, kept apart for their alignment.
    Small { scale: u8, lo: u64, hi: i64 },
    /// All others.
    Big(Box<Big>),
}

#[derive(Clone, PartialEq, Eq)]
struct Big {
    scale: u8,
    negative: bool,
    limbs: Vec<u32>,
}

const _: () = assert!(size_of::<Decimal>() <= 24);

/// The result has too many digits: MySQL's error 1690.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

type Computed = std::result::Result<Decimal, Overflow>;

impl Decimal {
    /// 0 with no digits after the point.
    pub const ZERO: Decimal = Decimal(Repr::Small { scale: 0, lo: 0, hi: 0 });

    /// `unscaled / 10^scale`. A scale past [`SCALE_MAX`] is rounded away.
    pub fn from_unscaled(unscaled: i128, scale: u8) -> Decimal {
        if unscaled.unsigned_abs() < SMALL_LIMIT && scale <= SCALE_MAX {
            return Decimal::small(unscaled, scale);
        }
        let limbs = limbs::from_u128(unscaled.unsigned_abs());
        // 39 digits always fit.
        Decimal::build(unscaled < 0, limbs, usize::from(scale)).unwrap_or(Decimal::ZERO)
    }

    const fn small(unscaled: i128, scale: u8) -> Decimal {
        Decimal(Repr::Small { scale, lo: unscaled as u64, hi: (unscaled >> 64) as i64 })
    }

    /// From sign and magnitude; rounds to [`SCALE_MAX`], then refuses what has too many digits.
    fn build(negative: bool, limbs: Vec<u32>, scale: usize) -> Computed {
        let (limbs, scale) = if scale > usize::from(SCALE_MAX) {
            (round_down(&limbs, scale - usize::from(SCALE_MAX)), usize::from(SCALE_MAX))
        } else {
            (limbs, scale)
        };
        if limbs::digits(&limbs).saturating_sub(scale) > usize::from(PRECISION_MAX) {
            return Err(Overflow);
        }
        // Digits after the point give way to those before it.
        let excess = limbs::digits(&limbs).saturating_sub(DIGITS_MAX).min(scale);
        let (limbs, scale) =
            if excess > 0 { (round_down(&limbs, excess), scale - excess) } else { (limbs, scale) };
        match limbs::to_u128(&limbs) {
            Some(value) if value < SMALL_LIMIT => {
                let value = value as i128;
                Ok(Decimal::small(if negative { -value } else { value }, scale as u8))
            }
            _ => Ok(Decimal(Repr::Big(Box::new(Big { scale: scale as u8, negative, limbs })))),
        }
    }

    /// The unscaled number when it has the small form.
    #[inline]
    fn as_small(&self) -> Option<i128> {
        match &self.0 {
            Repr::Small { lo, hi, .. } => Some(i128::from(*hi) << 64 | i128::from(*lo)),
            Repr::Big(_) => None,
        }
    }

    fn to_limbs(&self) -> Vec<u32> {
        match &self.0 {
            Repr::Small { .. } => limbs::from_u128(self.as_small().unwrap_or(0).unsigned_abs()),
            Repr::Big(big) => big.limbs.clone(),
        }
    }

    /// Digits after the point.
    pub fn scale(&self) -> u8 {
        match &self.0 {
            Repr::Small { scale, .. } => *scale,
            Repr::Big(big) => big.scale,
        }
    }

    /// Digits before the point; 0 for numbers below 1.
    pub fn int_digits(&self) -> usize {
        limbs::digits(&self.to_limbs()).saturating_sub(usize::from(self.scale()))
    }

    /// Digits in all, at least 1.
    pub fn precision(&self) -> usize {
        (self.int_digits() + usize::from(self.scale())).max(1)
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Repr::Small { lo: 0, hi: 0, .. })
    }

    /// Whether it is below 0.
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Repr::Small { hi, .. } => *hi < 0,
            Repr::Big(big) => big.negative,
        }
    }

    /// The number with the other sign.
    #[must_use]
    pub fn neg(&self) -> Decimal {
        match &self.0 {
            Repr::Small { scale, .. } => Decimal::small(-self.as_small().unwrap_or(0), *scale),
            Repr::Big(big) => {
                Decimal(Repr::Big(Box::new(Big { negative: !big.negative, ..(**big).clone() })))
            }
        }
    }

    /// The number without sign.
    #[must_use]
    pub fn abs(&self) -> Decimal {
        if self.is_negative() { self.neg() } else { self.clone() }
    }

    /// Compares as numbers: 1.0 and 1.00 are equal.
    pub fn compare(&self, other: &Decimal) -> Ordering {
        if let (Some(a), Some(b)) = (self.as_small(), other.as_small()) {
            if self.scale() == other.scale() {
                return a.cmp(&b);
            }
            let scale = self.scale().max(other.scale());
            if let (Some(a), Some(b)) =
                (shift_small(a, scale - self.scale()), shift_small(b, scale - other.scale()))
            {
                return a.cmp(&b);
            }
        }
        match (self.is_negative(), other.is_negative()) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (negative, _) => {
                let (a, b, _) = aligned(self, other);
                let order = limbs::compare(&a, &b);
                if negative { order.reverse() } else { order }
            }
        }
    }

    /// `self + other`.
    ///
    /// # Errors
    /// [`Overflow`] past 65 digits before the point.
    pub fn add(&self, other: &Decimal) -> Computed {
        if let (Some(a), Some(b)) = (self.as_small(), other.as_small()) {
            let scale = self.scale().max(other.scale());
            let a = shift_small(a, scale - self.scale());
            let b = shift_small(b, scale - other.scale());
            if let (Some(a), Some(b)) = (a, b)
                && let Some(sum) = a.checked_add(b)
            {
                return Ok(Decimal::from_unscaled(sum, scale));
            }
        }
        let (a, b, scale) = aligned(self, other);
        if self.is_negative() == other.is_negative() {
            return Decimal::build(self.is_negative(), limbs::add(&a, &b), scale);
        }
        match limbs::compare(&a, &b) {
            Ordering::Less => Decimal::build(other.is_negative(), limbs::sub(&b, &a), scale),
            Ordering::Equal | Ordering::Greater => {
                Decimal::build(self.is_negative(), limbs::sub(&a, &b), scale)
            }
        }
    }

    /// `self - other`.
    ///
    /// # Errors
    /// [`Overflow`] past 65 digits before the point.
    pub fn sub(&self, other: &Decimal) -> Computed {
        self.add(&other.neg())
    }

    /// `self * other`; the scales add up, to at most [`SCALE_MAX`].
    ///
    /// # Errors
    /// [`Overflow`] past 65 digits before the point.
    pub fn mul(&self, other: &Decimal) -> Computed {
        let scale = usize::from(self.scale()) + usize::from(other.scale());
        if let (Some(a), Some(b)) = (self.as_small(), other.as_small())
            && scale <= usize::from(SCALE_MAX)
            && let Some(product) = a.checked_mul(b)
        {
            return Ok(Decimal::from_unscaled(product, scale as u8));
        }
        let product = limbs::mul(&self.to_limbs(), &other.to_limbs());
        Decimal::build(self.is_negative() != other.is_negative(), product, scale)
    }

    /// `self / other`, `None` for a division by 0. As in MySQL the quotient is cut (not rounded) after a
    /// multiple of nine digits, enough for the dividend's scale plus `increment`; round it to
    /// [`Decimal::div_scale`] to show it.
    ///
    /// # Errors
    /// [`Overflow`] past 65 digits before the point.
    pub fn div(&self, other: &Decimal, increment: u8) -> std::result::Result<Option<Decimal>, Overflow> {
        if other.is_zero() {
            return Ok(None);
        }
        let (s1, s2) = (usize::from(self.scale()), usize::from(other.scale()));
        let (pad1, pad2) = (s1.next_multiple_of(9), s2.next_multiple_of(9));
        let extra = usize::from(increment).saturating_sub(pad1 - s1 + (pad2 - s2));
        let scale = (pad1 + pad2 + extra).next_multiple_of(9).min(usize::from(SCALE_MAX));
        // a/10^s1 / (b/10^s2) * 10^scale = a * 10^(scale + s2 - s1) / b; scale is at least s1.
        let dividend = limbs::shift_up(&self.to_limbs(), scale + s2 - s1.min(scale + s2));
        match limbs::div_rem(&dividend, &other.to_limbs()) {
            None => Ok(None),
            Some((quotient, _)) => {
                Decimal::build(self.is_negative() != other.is_negative(), quotient, scale).map(Some)
            }
        }
    }

    /// The scale that a quotient is shown with.
    pub fn div_scale(dividend_scale: u8, increment: u8) -> u8 {
        dividend_scale.saturating_add(increment).min(SCALE_MAX)
    }

    /// The whole part of `self / other`, `None` for a division by 0 (DIV).
    ///
    /// # Errors
    /// [`Overflow`] past 65 digits.
    pub fn int_div(&self, other: &Decimal) -> std::result::Result<Option<Decimal>, Overflow> {
        let (a, b, _) = aligned(self, other);
        match limbs::div_rem(&a, &b) {
            None => Ok(None),
            Some((quotient, _)) => {
                Decimal::build(self.is_negative() != other.is_negative(), quotient, 0).map(Some)
            }
        }
    }

    /// The remainder with the dividend's sign, `None` for a division by 0 (MOD).
    pub fn rem(&self, other: &Decimal) -> Option<Decimal> {
        let (a, b, scale) = aligned(self, other);
        let (_, remainder) = limbs::div_rem(&a, &b)?;
        // Smaller than the dividend, so it always fits.
        Some(Decimal::build(self.is_negative(), remainder, scale).unwrap_or(Decimal::ZERO))
    }

    /// Rounded half away from zero to `scale` digits after the point; a longer scale adds zeros.
    ///
    /// # Errors
    /// [`Overflow`] if the added zeros or the carry do not fit.
    pub fn round(&self, scale: u8) -> Computed {
        self.rescale(i32::from(scale), true)
    }

    /// ROUND(x, places): a negative number of places rounds before the point.
    ///
    /// # Errors
    /// [`Overflow`] if the carry does not fit.
    pub fn round_places(&self, places: i32) -> Computed {
        self.rescale(places.min(i32::from(SCALE_MAX)), true)
    }

    /// TRUNCATE(x, places).
    #[must_use]
    pub fn truncate_places(&self, places: i32) -> Decimal {
        // Cutting never adds digits.
        self.rescale(places.min(i32::from(self.scale())), false).unwrap_or(Decimal::ZERO)
    }

    fn rescale(&self, places: i32, round: bool) -> Computed {
        let scale = i32::from(self.scale());
        // Beyond all digits it makes no difference how far.
        let places = places.max(-2 * DIGITS_MAX as i32);
        if places == scale {
            return Ok(self.clone());
        }
        if let Some(value) = self.as_small()
            && places > scale
            && places <= i32::from(SCALE_MAX)
            && let Some(shifted) = shift_small(value, (places - scale) as u8)
        {
            return Ok(Decimal::from_unscaled(shifted, places as u8));
        }
        let magnitude = self.to_limbs();
        if places > scale {
            let shifted = limbs::shift_up(&magnitude, (places - scale) as usize);
            return Decimal::build(self.is_negative(), shifted, places as usize);
        }
        // More than all digits drop to 0 whatever the distance.
        let drop = ((scale - places) as usize).min(DIGITS_MAX + 2);
        let kept = if round { round_down(&magnitude, drop) } else { limbs::shift_down(&magnitude, drop).0 };
        if places >= 0 {
            return Decimal::build(self.is_negative(), kept, places as usize);
        }
        let zeros = (-places) as usize;
        if kept.is_empty() { Ok(Decimal::ZERO) } else { self.with_zeros(&kept, zeros) }
    }

    fn with_zeros(&self, kept: &[u32], zeros: usize) -> Computed {
        if zeros > DIGITS_MAX {
            return Err(Overflow);
        }
        Decimal::build(self.is_negative(), limbs::shift_up(kept, zeros), 0)
    }

    /// The nearest integer at or below (FLOOR).
    ///
    /// # Errors
    /// [`Overflow`] if the carry does not fit.
    pub fn floor(&self) -> Computed {
        let whole = self.truncate_places(0);
        if self.is_negative() && whole.compare(self).is_ne() {
            whole.sub(&Decimal::from_unscaled(1, 0))
        } else {
            Ok(whole)
        }
    }

    /// The nearest integer at or above (CEILING).
    ///
    /// # Errors
    /// [`Overflow`] if the carry does not fit.
    pub fn ceil(&self) -> Computed {
        self.neg().floor().map(|floor| floor.neg())
    }

    /// The number rounded to a whole one, if it fits 128 bits.
    pub fn to_i128(&self) -> Option<i128> {
        let rounded = self.round(0).ok()?;
        match rounded.as_small() {
            Some(value) => Some(value),
            None => {
                let value = i128::try_from(limbs::to_u128(&rounded.to_limbs())?).ok()?;
                Some(if rounded.is_negative() { -value } else { value })
            }
        }
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        // 2^53 and 10^22 are exact as doubles, and so their quotient is correctly rounded.
        if let Some(value) = self.as_small()
            && value.unsigned_abs() < 1 << 53
            && self.scale() <= 22
        {
            return value as f64 / 10f64.powi(i32::from(self.scale()));
        }
        // A number in this form always parses.
        self.to_string().parse().unwrap_or(0.0)
    }

    /// From a double by its shortest decimal text; `None` if it is not finite or has too many digits.
    pub fn from_f64(value: f64) -> Option<Decimal> {
        if !value.is_finite() {
            return None;
        }
        let parsed = Decimal::parse(format!("{value:e}").as_bytes())?;
        (!parsed.overflow).then_some(parsed.value)
    }

    /// The greatest number of a column type.
    pub fn max_value(precision: u8, scale: u8) -> Decimal {
        let nines = limbs::sub(&limbs::shift_up(&[1], usize::from(precision)), &[1]);
        // At most 65 digits.
        Decimal::build(false, nines, usize::from(scale)).unwrap_or(Decimal::ZERO)
    }

    /// Whether it fits a column type without rounding away digits before the point.
    pub fn fits(&self, precision: u8, scale: u8) -> bool {
        self.int_digits() <= usize::from(precision.saturating_sub(scale))
    }

    /// The same number with the fewest digits after the point, for hashing and grouping.
    #[must_use]
    pub fn normalized(&self) -> Decimal {
        let mut limbs = self.to_limbs();
        let mut scale = usize::from(self.scale());
        while scale > 0 {
            let (shorter, dropped) = limbs::shift_down(&limbs, 1);
            if dropped != 0 {
                break;
            }
            limbs = shorter;
            scale -= 1;
        }
        Decimal::build(self.is_negative(), limbs, scale).unwrap_or(Decimal::ZERO)
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Decimal {
        Decimal::small(i128::from(value), 0)
    }
}

impl From<u64> for Decimal {
    fn from(value: u64) -> Decimal {
        Decimal::small(i128::from(value), 0)
    }
}

/// `value * 10^digits` in 128 bits.
#[inline]
fn shift_small(value: i128, digits: u8) -> Option<i128> {
    if digits == 0 { Some(value) } else { value.checked_mul(10i128.checked_pow(u32::from(digits))?) }
}

/// Both magnitudes at the greater scale.
fn aligned(a: &Decimal, b: &Decimal) -> (Vec<u32>, Vec<u32>, usize) {
    let scale = a.scale().max(b.scale());
    let at_scale = |d: &Decimal| limbs::shift_up(&d.to_limbs(), usize::from(scale - d.scale()));
    (at_scale(a), at_scale(b), usize::from(scale))
}

/// `magnitude / 10^digits`, rounded half up.
fn round_down(magnitude: &[u32], digits: usize) -> Vec<u32> {
    let (kept, dropped) = limbs::shift_down(magnitude, digits);
    if dropped >= 5 { limbs::add(&kept, &[1]) } else { kept }
}

#[cfg(test)]
mod tests;
