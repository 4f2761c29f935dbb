//! MySQL's SQL, from bytes to a syntax tree: lexer, Pratt parser, tree, and the printer back to text.
//!
//! Role: text comes in as bytes (a literal may hold any), a [`ast::Stmt`] or a [`ParseError`] comes out. The parser
//! keeps no state between statements, reads no catalogue and knows no session beyond the few SQL modes that change
//! the grammar ([`SqlMode`]). It never panics and never recurses deeper than [`MAX_HEIGHT`] levels, whatever the bytes.
//! The length of a statement is the caller's limit (`max_allowed_packet`); memory used here is proportional to it.

pub mod ast;

/// Greatest height of any tree the parser returns. Each level costs the recursive parser, and later the binder and the
/// evaluator, some hundreds of bytes of stack; a worker has 2 MiB. Real statements stay below fifty.
pub const MAX_HEIGHT: u32 = 256;
