//! Asking the processor for a cache line ahead of its use: the one unsafe call of the storage, and a harmless
//! one.
//!
//! A prefetch reads nothing and cannot fault, whatever the address; it only costs a slot in the load queue.
//! On processors other than x86-64 it does nothing.

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;

/// Starts loading the cache line of `place`.
#[inline(always)]
#[allow(unsafe_code)]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching has no effect visible to the program and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Starts loading the cache lines of `bytes`, at most the first four: the hardware follows longer rows by
/// itself.
#[inline(always)]
pub fn prefetch_bytes(bytes: &[u8]) {
    let shown = bytes.len().min(4 * LINE_BYTES);
    let mut at = 0;
    while at < shown {
        prefetch(&bytes[at]);
        at += LINE_BYTES;
    }
    // The row need not start on a line, so its last byte may lie one line further.
    if let Some(last) = bytes[..shown].last() {
        prefetch(last);
    }
}
