//! NdbError: what went wrong, as a code of NDB, its class, and the particular cause.
//!
//! Whether something may be tried again is a property of the code's class ([`NdbError::retryable`]), never
//! of a list in the application. An outcome that nobody knows ([`NdbError::unknown_outcome`]) must not be
//! retried blindly: the transaction may have been committed.

use signals::{ErrorClass, ErrorCode};

/// A failed call. Two errors are equal when their codes are; the detail is for people.
#[derive(Clone)]
pub struct NdbError {
    code: ErrorCode,
    detail: Option<Box<str>>,
}

impl NdbError {
    /// An error whose code says it all.
    #[must_use]
    pub const fn new(code: ErrorCode) -> Self {
        Self { code, detail: None }
    }

    /// An error with its particular cause and what to do about it.
    pub fn with(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self { code, detail: Some(detail.into().into_boxed_str()) }
    }

    /// NDB's code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        self.code
    }

    /// The code's class.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        self.code.class()
    }

    /// The particular cause; empty if the code says it all.
    #[must_use]
    pub fn detail(&self) -> &str {
        self.detail.as_deref().unwrap_or_default()
    }

    /// Whether the same transaction, started anew, may succeed.
    #[must_use]
    pub fn retryable(&self) -> bool {
        self.code.is_temporary()
    }

    /// Whether nobody knows if the transaction was committed.
    #[must_use]
    pub fn unknown_outcome(&self) -> bool {
        self.class() == ErrorClass::UnknownResult
    }

    /// Whether the row is not there (626).
    #[must_use]
    pub fn not_found(&self) -> bool {
        self.code == ErrorCode::TUPLE_NOT_FOUND
    }
}

impl PartialEq for NdbError {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}
impl Eq for NdbError {}

impl From<ErrorCode> for NdbError {
    fn from(code: ErrorCode) -> Self {
        Self::new(code)
    }
}

impl From<signals::control::Refusal> for NdbError {
    fn from(refusal: signals::control::Refusal) -> Self {
        Self::with(refusal.code, refusal.detail)
    }
}

impl std::fmt::Display for NdbError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.detail() {
            "" => write!(f, "NDB error {}", self.code),
            detail => write!(f, "NDB error {} ({detail})", self.code),
        }
    }
}
impl std::fmt::Debug for NdbError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NdbError({}, {:?}, {:?})", self.code.0, self.class(), self.detail())
    }
}
impl std::error::Error for NdbError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_decides_what_to_do() {
        let temporary = NdbError::with(ErrorCode::NODE_FAILED_NO_COMMIT, "node 2");
        assert!(temporary.retryable() && !temporary.unknown_outcome());
        assert!(temporary.to_string().contains("4010") && temporary.to_string().contains("node 2"));
        let unknown = NdbError::new(ErrorCode::NODE_FAILED_UNKNOWN);
        assert!(!unknown.retryable() && unknown.unknown_outcome());
        assert!(NdbError::from(ErrorCode::TUPLE_NOT_FOUND).not_found());
        assert_eq!(unknown, NdbError::with(ErrorCode::NODE_FAILED_UNKNOWN, "other words"));
    }
}
