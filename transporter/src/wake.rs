//! Wake: how one thread wakes another that sleeps in poll or epoll, at no cost while it is awake.
//!
//! The sleeper announces itself (`arm`), looks once more for work, and sleeps on the descriptor. A waker
//! publishes its work first and then calls `wake`: two memory accesses if nobody sleeps, one system call if
//! somebody does. The fences on both sides make sure that either the waker sees the announcement or the
//! sleeper sees the work.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// See the module.
pub struct Wake {
    sleeping: AtomicBool,
    /// Times a sleeper was really woken, for the counters.
    woken: AtomicU64,
    fd: OwnedFd,
}

impl Wake {
    /// A new descriptor.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { sleeping: AtomicBool::new(false), woken: AtomicU64::new(0), fd })
    }

    /// The sleeper is about to sleep; it must look for work once more after this call.
    #[inline]
    pub fn arm(&self) {
        self.sleeping.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// The sleeper is awake again. Returns whether it was woken by [`Self::wake`] since [`Self::arm`].
    #[inline]
    pub fn disarm(&self) -> bool {
        !self.sleeping.swap(false, Ordering::SeqCst)
    }

    /// Wakes the sleeper if it sleeps. The work must have been published before.
    #[inline]
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::SeqCst) && self.sleeping.swap(false, Ordering::SeqCst) {
            self.notify();
        }
    }

    /// Makes the descriptor readable, whether somebody sleeps or not.
    #[cold]
    pub fn notify(&self) {
        self.woken.fetch_add(1, Ordering::Relaxed);
        // Fails only if the counter is about to overflow; the descriptor is readable then anyway.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable again; not needed by edge-triggered epoll.
    pub fn drain(&self) {
        let mut count = [0u8; 8];
        let _ = rustix::io::read(&self.fd, &mut count);
    }

    /// How often a sleeper was woken.
    #[must_use]
    pub fn times_woken(&self) -> u64 {
        self.woken.load(Ordering::Relaxed)
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::sync::Arc;

    fn readable(wake: &Wake, timeout_ms: i64) -> bool {
        let mut fds = [PollFd::new(wake, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: timeout_ms * 1_000_000 };
        poll(&mut fds, Some(&timeout)).unwrap() == 1
    }

    #[test]
    fn only_a_sleeper_is_woken_and_only_once() {
        let wake = Wake::new().unwrap();
        wake.wake();
        assert!(!readable(&wake, 0));
        wake.arm();
        wake.wake();
        wake.wake();
        assert!(readable(&wake, 0));
        assert_eq!(wake.times_woken(), 1);
        assert!(wake.disarm());
        wake.drain();
        assert!(!readable(&wake, 0));
        wake.arm();
        assert!(!wake.disarm());
    }

    /// Ping-pong over two counters; a lost wake-up would leave both asleep until the deadline of the poll.
    #[test]
    fn no_wake_up_is_lost() {
        const ROUNDS: u64 = 20_000;
        let a = Arc::new((Wake::new().unwrap(), AtomicU64::new(0)));
        let b = Arc::new((Wake::new().unwrap(), AtomicU64::new(0)));
        let wait_for = |own: &(Wake, AtomicU64), value: u64| {
            while own.1.load(Ordering::Acquire) < value {
                own.0.arm();
                if own.1.load(Ordering::Acquire) < value {
                    assert!(readable(&own.0, 900), "a wake-up was lost at {value}");
                }
                if own.0.disarm() {
                    own.0.drain();
                }
            }
        };
        let (a2, b2) = (a.clone(), b.clone());
        let other = std::thread::spawn(move || {
            for i in 1..=ROUNDS {
                wait_for(&b2, i);
                a2.1.store(i, Ordering::Release);
                a2.0.wake();
            }
        });
        for i in 1..=ROUNDS {
            b.1.store(i, Ordering::Release);
            b.0.wake();
            wait_for(&a, i);
        }
        other.join().unwrap();
    }
}
