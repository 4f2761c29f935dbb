//! Limbs: whole numbers without sign as little-endian vectors of base 1,000,000,000 digits.
//!
//! Role: the slow path under [`super::Decimal`] for numbers past 38 digits. A vector never ends in zeros, so
//! the empty vector is 0 and a longer vector is a greater number. Shifting by powers of ten is cheap in this
//! base, and shifting is what fixed-scale arithmetic does most.

use std::cmp::Ordering;

/// The base of a limb.
pub(super) const BASE: u64 = 1_000_000_000;
/// Decimal digits of a limb.
pub(super) const DIGITS: usize = 9;

/// 10 to the power of `n`, for n up to 9.
pub(super) const fn pow10(n: usize) -> u64 {
    let mut value = 1;
    let mut i = 0;
    while i < n {
        value *= 10;
        i += 1;
    }
    value
}

fn trim(mut limbs: Vec<u32>) -> Vec<u32> {
    while limbs.last() == Some(&0) {
        limbs.pop();
    }
    limbs
}

pub(super) fn from_u128(mut value: u128) -> Vec<u32> {
    let mut limbs = Vec::with_capacity(5);
    while value > 0 {
        limbs.push((value % u128::from(BASE)) as u32);
        value /= u128::from(BASE);
    }
    limbs
}

/// The number, if it fits.
pub(super) fn to_u128(limbs: &[u32]) -> Option<u128> {
    limbs
        .iter()
        .rev()
        .try_fold(0u128, |value, &limb| value.checked_mul(u128::from(BASE))?.checked_add(u128::from(limb)))
}

pub(super) fn compare(a: &[u32], b: &[u32]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.iter().rev().cmp(b.iter().rev()))
}

/// How many decimal digits the number has; 0 for 0.
pub(super) fn digits(limbs: &[u32]) -> usize {
    match limbs.last() {
        None => 0,
        Some(&top) => (limbs.len() - 1) * DIGITS + top.ilog10() as usize + 1,
    }
}

pub(super) fn add(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut sum = Vec::with_capacity(a.len().max(b.len()) + 1);
    let mut carry = 0;
    for i in 0..a.len().max(b.len()) {
        let total = at(a, i) + at(b, i) + carry;
        sum.push((total % BASE) as u32);
        carry = total / BASE;
    }
    if carry > 0 {
        sum.push(carry as u32);
    }
    sum
}

fn at(limbs: &[u32], i: usize) -> u64 {
    limbs.get(i).map_or(0, |&limb| u64::from(limb))
}

/// `a - b`, where `a` is not less than `b`.
pub(super) fn sub(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut difference = Vec::with_capacity(a.len());
    let mut borrow = 0;
    for i in 0..a.len() {
        let minuend = at(a, i) + BASE - at(b, i) - borrow;
        difference.push((minuend % BASE) as u32);
        borrow = u64::from(minuend < BASE);
    }
    trim(difference)
}

pub(super) fn mul(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut product = vec![0u32; a.len() + b.len()];
    for (i, &x) in a.iter().enumerate() {
        let mut carry = 0u64;
        for (j, &y) in b.iter().enumerate() {
            let total = u64::from(product[i + j]) + u64::from(x) * u64::from(y) + carry;
            product[i + j] = (total % BASE) as u32;
            carry = total / BASE;
        }
        product[i + b.len()] = carry as u32;
    }
    trim(product)
}

fn mul_limb(a: &[u32], factor: u64) -> Vec<u32> {
    let mut product = Vec::with_capacity(a.len() + 1);
    let mut carry = 0;
    for &limb in a {
        let total = u64::from(limb) * factor + carry;
        product.push((total % BASE) as u32);
        carry = total / BASE;
    }
    if carry > 0 {
        product.push(carry as u32);
    }
    trim(product)
}

/// The quotient and remainder of a division by one limb, which is not 0.
fn div_limb(a: &[u32], divisor: u64) -> (Vec<u32>, u64) {
    let mut quotient = vec![0; a.len()];
    let mut remainder = 0;
    for (i, &limb) in a.iter().enumerate().rev() {
        let total = remainder * BASE + u64::from(limb);
        quotient[i] = (total / divisor) as u32;
        remainder = total % divisor;
    }
    (trim(quotient), remainder)
}

/// `a * 10^n`.
pub(super) fn shift_up(a: &[u32], n: usize) -> Vec<u32> {
    if a.is_empty() {
        return Vec::new();
    }
    let mut shifted = vec![0; n / DIGITS];
    shifted.extend(mul_limb(a, pow10(n % DIGITS)));
    shifted
}

/// `a / 10^n`, and the first digit that was dropped.
pub(super) fn shift_down(a: &[u32], n: usize) -> (Vec<u32>, u32) {
    if n == 0 {
        return (a.to_vec(), 0);
    }
    let above = a.get((n - 1) / DIGITS..).unwrap_or(&[]);
    let (with_dropped, _) = div_limb(above, pow10((n - 1) % DIGITS));
    let (kept, dropped) = div_limb(&with_dropped, 10);
    (kept, dropped as u32)
}

/// Quotient and remainder; `None` for a division by 0. Schoolbook long division (Knuth's algorithm D).
pub(super) fn div_rem(a: &[u32], b: &[u32]) -> Option<(Vec<u32>, Vec<u32>)> {
    let &top = b.last()?;
    if compare(a, b).is_lt() {
        return Some((Vec::new(), a.to_vec()));
    }
    if b.len() == 1 {
        let (quotient, remainder) = div_limb(a, u64::from(top));
        return Some((quotient, from_u128(u128::from(remainder))));
    }
    // Scale both so that the divisor's top limb is at least half the base: then a guess from the top limbs is
    // at most two too big.
    let scale = BASE / (u64::from(top) + 1);
    let mut rest = mul_limb(a, scale);
    let divisor = mul_limb(b, scale);
    rest.resize(a.len() + 1, 0);
    let n = divisor.len();
    let (first, second) = (at(&divisor, n - 1), at(&divisor, n - 2));
    let mut quotient = vec![0; rest.len() - n];
    for j in (0..quotient.len()).rev() {
        let head = at(&rest, j + n) * BASE + at(&rest, j + n - 1);
        let (mut guess, mut left) = (head / first, head % first);
        while guess >= BASE || guess * second > left * BASE + at(&rest, j + n - 2) {
            guess -= 1;
            left += first;
            if left >= BASE {
                break;
            }
        }
        if subtract_product(&mut rest[j..=j + n], &divisor, guess) {
            guess -= 1;
            add_back(&mut rest[j..=j + n], &divisor);
        }
        quotient[j] = guess as u32;
    }
    let (remainder, _) = div_limb(&trim(rest), scale);
    Some((trim(quotient), remainder))
}

/// Subtracts `divisor * factor` from `rest` in place; true if the result went below 0 and wrapped.
fn subtract_product(rest: &mut [u32], divisor: &[u32], factor: u64) -> bool {
    let mut borrow = 0i64;
    let mut carry = 0u64;
    for (i, limb) in rest.iter_mut().enumerate() {
        let product = at(divisor, i) * factor + carry;
        carry = product / BASE;
        let difference = i64::from(*limb) - (product % BASE) as i64 - borrow;
        borrow = i64::from(difference < 0);
        *limb = (difference + borrow * BASE as i64) as u32;
    }
    borrow != 0
}

fn add_back(rest: &mut [u32], divisor: &[u32]) {
    let mut carry = 0;
    for (i, limb) in rest.iter_mut().enumerate() {
        let total = u64::from(*limb) + at(divisor, i) + carry;
        *limb = (total % BASE) as u32;
        carry = total / BASE;
    }
}
