//! Rust source as tidy sees it: tokens with line numbers, and the few shapes its rules ask for.
//!
//! A full parser would know more than the rules need. Comments are gone and strings are opaque, so that a
//! rule never bites on prose; what macros hold is walked like everything else.
//!
//! * [`functions`]: every `fn` with a body, its lines of code, and whether it is test code.
//! * [`paths`]: every path the code names, `use` trees spread out (`use std::{fs, io}` is `std::fs` and
//!   `std::io`), and names brought in by `use` replaced by what they stand for.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::BTreeMap;

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// Where its name stands.
    pub(super) line: usize,
    /// Lines of its body with code on them.
    pub(super) code_lines: usize,
    pub(super) is_test: bool,
}

/// A path and the line it stands on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NamedPath {
    pub(super) path: String,
    pub(super) line: usize,
}

/// The functions of a file. `is_test` says that the whole file is test code.
pub(super) fn functions(text: &str, tokens: TokenStream, is_test: bool) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    collect_functions(tokens, &lines, is_test, &mut found);
    found
}

fn collect_functions(tokens: TokenStream, lines: &[&str], is_test: bool, found: &mut Vec<Function>) {
    let mut named: Option<(String, usize)> = None;
    let mut after_fn = false;
    // Test code begins at `#[cfg(test)]` or `#[test]` and ends with the item.
    let mut item_is_test = is_test;
    for tree in tokens {
        match tree {
            TokenTree::Ident(ident) if after_fn => {
                named = Some((ident.to_string(), ident.span().start().line));
                after_fn = false;
            }
            TokenTree::Ident(ident) => after_fn = ident == "fn",
            TokenTree::Group(group) => {
                after_fn = false;
                item_is_test |= marks_test(&group);
                let is_body = group.delimiter() == Delimiter::Brace;
                if is_body && let Some((name, line)) = named.take() {
                    let code_lines = code_lines(&group, lines);
                    found.push(Function { name, line, code_lines, is_test: item_is_test });
                }
                collect_functions(group.stream(), lines, item_is_test, found);
                if is_body {
                    item_is_test = is_test;
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => {
                (named, item_is_test, after_fn) = (None, is_test, false);
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => after_fn = false,
        }
    }
}

/// Whether an attribute's brackets hold `cfg(test)` or end in `test`.
fn marks_test(group: &Group) -> bool {
    let text = group.stream().to_string().replace(' ', "");
    group.delimiter() == Delimiter::Bracket
        && (text == "cfg(test)" || text == "test" || text.ends_with("::test"))
}

fn code_lines(body: &Group, lines: &[&str]) -> usize {
    let (first, last) = (body.span_open().start().line, body.span_close().end().line);
    let inner = lines.get(first..last.saturating_sub(1)).unwrap_or_default();
    inner.iter().filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// The paths of a file.
pub(super) fn paths(tokens: TokenStream) -> Vec<NamedPath> {
    let mut flat = Vec::new();
    flatten(tokens, &mut flat);
    let mut found = Vec::new();
    let mut names = BTreeMap::new();
    let mut rest = flat.as_slice();
    while let Some(((word, line), tail)) = rest.split_first() {
        rest = tail;
        if word == "use" {
            rest = use_tree("", rest, &mut found, &mut names);
        } else if is_name(word) {
            let mut path = word.clone();
            while let [(colons, _), (next, _), tail @ ..] = rest
                && colons == "::"
                && is_name(next)
            {
                path = format!("{path}::{next}");
                rest = tail;
            }
            found.push(NamedPath { path, line: *line });
        }
    }
    // A file may name something above the `use` that brings it in.
    for named in &mut found {
        let (first, more) = named.path.split_once("::").unwrap_or((&named.path, ""));
        if let Some(full) = names.get(first) {
            named.path = if more.is_empty() { full.clone() } else { format!("{full}::{more}") };
        }
    }
    found
}

type Word = (String, usize);

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Tokens in a row, `::` as one, brackets as tokens of their own.
fn flatten(tokens: TokenStream, flat: &mut Vec<Word>) {
    for tree in tokens {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                flat.push((open.into(), line));
                flatten(group.stream(), flat);
                flat.push((close.into(), group.span_close().end().line));
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => match flat.last_mut() {
                Some((last, _)) if last == ":" => *last = "::".into(),
                _ => flat.push((":".into(), line)),
            },
            // A string is no path, whatever it says.
            TokenTree::Literal(_) => flat.push(("\"".into(), line)),
            TokenTree::Ident(_) | TokenTree::Punct(_) => flat.push((tree.to_string(), line)),
        }
    }
}

/// Reads one tree of a `use` (up to `,`, `;` or `}`), and returns what follows it.
fn use_tree<'a>(
    prefix: &str,
    mut rest: &'a [Word],
    found: &mut Vec<NamedPath>,
    names: &mut BTreeMap<String, String>,
) -> &'a [Word] {
    let mut path = prefix.to_string();
    while let Some(((word, line), tail)) = rest.split_first() {
        match word.as_str() {
            "::" => rest = tail,
            "{" => {
                rest = tail;
                while let Some(((word, _), tail)) = rest.split_first() {
                    rest = match word.as_str() {
                        "}" => return tail,
                        "," => tail,
                        _ => use_tree(&path, rest, found, names),
                    };
                }
            }
            "*" | "self" if !path.is_empty() => {
                found.push(NamedPath { path: path.clone(), line: *line });
                names.insert(last_of(&path).into(), path.clone());
                return skip_alias(tail, &path, names);
            }
            name if is_name(name) => {
                path = if path.is_empty() { name.into() } else { format!("{path}::{name}") };
                rest = tail;
                if !matches!(rest.first(), Some((next, _)) if next == "::") {
                    found.push(NamedPath { path: path.clone(), line: *line });
                    names.insert(last_of(&path).into(), path.clone());
                    return skip_alias(rest, &path, names);
                }
            }
            _ => return rest,
        }
    }
    rest
}

/// After a name of a `use`: takes note of `as other`.
fn skip_alias<'a>(rest: &'a [Word], path: &str, names: &mut BTreeMap<String, String>) -> &'a [Word] {
    match rest {
        [(keyword, _), (alias, _), tail @ ..] if keyword == "as" => {
            names.remove(last_of(path));
            names.insert(alias.clone(), path.into());
            tail
        }
        _ => rest,
    }
}

fn last_of(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths_of(text: &str) -> Vec<String> {
        paths(text.parse().unwrap()).into_iter().map(|p| p.path).collect()
    }

    #[test]
    fn functions_are_measured_in_lines_of_code() {
        let text = "impl A {\n    fn a(x: fn(u8) -> u8) -> [u8; 2] {\n        // why\n\n        b();\n        \
                    c()\n    }\n}\nfn d() {}\ntrait T { fn e(); }\n#[cfg(test)]\nmod tests {\n fn f() {\n 1;\n }\n}\n\
                    fn g() {\n}\n";
        let found = functions(text, text.parse().unwrap(), false);
        let brief: Vec<(&str, usize, usize, bool)> =
            found.iter().map(|f| (f.name.as_str(), f.line, f.code_lines, f.is_test)).collect();
        assert_eq!(brief, [("a", 2, 2, false), ("d", 9, 0, false), ("f", 13, 1, true), ("g", 17, 0, false)]);
    }

    #[test]
    fn uses_are_spread_out_and_names_resolved() {
        let text = "use std::{fs, io::{self, Read as R}, net::*};\nfn a() { fs::read(x); R::read(y); }";
        let found = paths_of(text);
        for path in
            ["std::fs", "std::io", "std::io::Read", "std::net", "std::fs::read", "std::io::Read::read"]
        {
            assert!(found.iter().any(|p| p == path), "{path}: {found:?}");
        }
        let renamed = paths_of("use std::time as t;\nlet now = t::Instant::now();");
        assert!(renamed.contains(&"std::time::Instant::now".to_string()), "{renamed:?}");
        assert!(!paths_of("// std::fs\nlet a = \"std::fs\";").iter().any(|p| p.contains("fs")));
        assert!(paths_of("m!(std::thread::spawn(x))").contains(&"std::thread::spawn".to_string()));
    }
}
