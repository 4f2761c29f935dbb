//! The lines of an INI file: sections and `key = value` pairs with their line numbers; no meaning yet.
//!
//! Sections repeat (`[ndbd]` once per node) and keep their order. `#` and `;` begin a comment at the start
//! of a line or behind white space; inside double quotes they do not. Lines end in LF or CRLF; a byte order
//! mark is skipped. Key and value are separated by the first `=` or `:`. Any bytes may come in: what is not
//! a line of the grammar becomes a problem with its line number, and reading goes on.

use crate::params::{SECTIONS, Section, fold, nearest_of};
use crate::problem::{Place, ProblemCode, Problems, shorten};

/// Largest file read; a configuration of 255 nodes with every parameter set stays well below.
pub(crate) const FILE_BYTES_MAX: usize = 4 << 20;
/// Longest line read.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Most sections read: a full cluster and its links fit many times.
const SECTIONS_MAX: usize = 70_000;

/// One section of the file.
#[derive(Debug, Clone)]
pub(crate) struct RawSection {
    pub(crate) section: Section,
    /// `[... default]`
    pub(crate) is_default: bool,
    /// Header as written, without brackets.
    pub(crate) header: String,
    pub(crate) line: u32,
    pub(crate) entries: Vec<RawEntry>,
}

/// One `key = value` line.
#[derive(Debug, Clone)]
pub(crate) struct RawEntry {
    pub(crate) line: u32,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// What the lines before this one say about where a pair belongs.
enum Current {
    /// No section yet.
    None,
    /// The last one of the list.
    Known,
    /// A section that was refused: its pairs are skipped, it was reported once.
    Refused,
}

/// Splits a file into sections.
pub(crate) fn read(bytes: &[u8], problems: &mut Problems) -> Vec<RawSection> {
    let mut sections: Vec<RawSection> = Vec::new();
    if bytes.len() > FILE_BYTES_MAX {
        let message = format!("the file has {} bytes; at most {FILE_BYTES_MAX} are read", bytes.len());
        problems.error(&Place::file(), ProblemCode::TooMany, message, "is this the right file?");
        return sections;
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut current = Current::None;
    for (line, raw) in (1u32..).zip(bytes.split(|b| *b == b'\n')) {
        let place = Place { line, ..Place::default() };
        let Some(text) = line_text(raw, &place, problems) else { continue };
        if text.is_empty() {
            continue;
        }
        if text.starts_with('[') {
            current = match header(text, &place, problems) {
                Some(_) if sections.len() >= SECTIONS_MAX => {
                    problems.error(&place, ProblemCode::TooMany, "too many sections", "");
                    return sections;
                }
                Some(section) => {
                    sections.push(section);
                    Current::Known
                }
                None => Current::Refused,
            };
            continue;
        }
        let Some(entry) = pair(text, line, problems) else { continue };
        match (&current, sections.last_mut()) {
            (Current::Known, Some(section)) => section.entries.push(entry),
            (Current::Refused, _) => {}
            (Current::None | Current::Known, _) => problems.error(
                &Place { line, section: String::new(), key: entry.key, value: entry.value },
                ProblemCode::Syntax,
                "parameter outside of any section",
                "begin with a section such as [ndbd default]",
            ),
        }
    }
    sections
}

/// The line as text, without comment and surrounding blanks.
fn line_text<'a>(raw: &'a [u8], place: &Place, problems: &mut Problems) -> Option<&'a str> {
    if raw.len() > LINE_BYTES_MAX {
        let message = format!("the line has {} bytes; at most {LINE_BYTES_MAX} are read", raw.len());
        problems.error(place, ProblemCode::Syntax, message, "");
        return None;
    }
    let Ok(text) = std::str::from_utf8(raw) else {
        problems.error(place, ProblemCode::Syntax, "the line is not UTF-8 text", "save the file as UTF-8");
        return None;
    };
    Some(without_comment(text).trim())
}

/// Cuts a comment: `#` or `;` first on the line or behind a blank, not in quotes.
fn without_comment(text: &str) -> &str {
    let mut in_quotes = false;
    let mut after_blank = true;
    for (at, c) in text.char_indices() {
        match c {
            '"' => in_quotes = !in_quotes,
            '#' | ';' if after_blank && !in_quotes => return text.get(..at).unwrap_or(text),
            _ => {}
        }
        after_blank = c.is_whitespace();
    }
    text
}

/// Reads `[ndbd default]`.
fn header(text: &str, place: &Place, problems: &mut Problems) -> Option<RawSection> {
    let Some(name) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) else {
        let message = format!("section header without its closing bracket: {}", shorten(text));
        problems.error(place, ProblemCode::Syntax, message, "write [name] alone on a line");
        return None;
    };
    let name = name.trim();
    let folded = fold(name);
    let base = folded.strip_suffix("default").filter(|b| !b.is_empty());
    let wanted = base.unwrap_or(&folded);
    let found = SECTIONS.into_iter().find(|s| s.spellings().contains(&wanted));
    let Some(section) = found else {
        unknown_section(name, wanted, place, problems);
        return None;
    };
    Some(RawSection {
        section,
        is_default: base.is_some(),
        header: shorten(name),
        line: place.line,
        entries: Vec::new(),
    })
}

fn unknown_section(name: &str, wanted: &str, place: &Place, problems: &mut Problems) {
    let place = Place { line: place.line, section: name.to_owned(), ..Place::default() };
    let hint = if wanted == "computer" {
        "[computer] is deprecated: give HostName in each node's section".to_owned()
    } else {
        let names = SECTIONS.into_iter().map(|s| (s.name(), s.name()));
        let near = nearest_of(wanted, names);
        near.map_or_else(
            || {
                "sections are [system], [ndb_mgmd], [ndbd], [mysqld], [tcp], [shm] and their default forms"
                    .to_owned()
            },
            |n| format!("did you mean [{n}]?"),
        )
    };
    problems.error(&place, ProblemCode::UnknownSection, "unknown section", &hint);
}

/// Reads `key = value`.
fn pair(text: &str, line: u32, problems: &mut Problems) -> Option<RawEntry> {
    let split = text.find(['=', ':']).and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?)));
    let Some((key, value)) = split else {
        let place = Place { line, ..Place::default() };
        let message = format!("neither a section nor key=value: {}", shorten(text));
        problems.error(&place, ProblemCode::Syntax, message, "");
        return None;
    };
    let key = key.trim();
    let value = value.trim();
    let unquoted = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
    if key.is_empty() {
        let place = Place { line, value: value.to_owned(), ..Place::default() };
        problems.error(&place, ProblemCode::Syntax, "a value without a parameter name", "");
        return None;
    }
    Some(RawEntry { line, key: key.to_owned(), value: unquoted.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_ok(text: &str) -> Vec<RawSection> {
        let mut problems = Problems::new("t.ini");
        let sections = read(text.as_bytes(), &mut problems);
        assert!(!problems.has_errors(), "{}", problems.finish());
        sections
    }

    #[test]
    fn sections_repeat_and_keep_lines() {
        let s = read_ok(
            "\u{feff}# c\r\n[NDBD Default]\r\nDataMemory: 1G ; why\r\n\r\n[ndb-mgmd]\n[ndbd]\nDataDir=\"/a #b\"\n[NDBD]",
        );
        assert_eq!(s.len(), 4);
        assert!(s[0].is_default && s[0].section == Section::DataNode && s[0].line == 2);
        assert_eq!((s[0].entries[0].key.as_str(), s[0].entries[0].value.as_str()), ("DataMemory", "1G"));
        assert_eq!((s[1].section, s[1].line), (Section::MgmNode, 5));
        assert_eq!(s[2].entries[0].value, "/a #b");
        assert_eq!((s[3].section, s[3].is_default), (Section::DataNode, false));
    }

    #[test]
    fn a_comment_needs_a_blank_before_it() {
        let s = read_ok("[ndbd]\nDataDir=/a#b;c #d");
        assert_eq!(s[0].entries[0].value, "/a#b;c");
    }

    #[test]
    fn every_bad_line_is_reported() {
        let mut problems = Problems::new("t.ini");
        let text = b"x=1\n[ndbb]\na=b\n[ndbd\n[ndbd]\nnonsense\n=5\n\xff\xfe\n[computer]\n";
        let sections = read(text, &mut problems);
        assert_eq!(sections.len(), 1);
        let errors = problems.finish();
        let lines: Vec<u32> = errors.problems.iter().map(|p| p.line).collect();
        assert_eq!(lines, [1, 2, 4, 6, 7, 8, 9]);
        assert_eq!(errors.problems[1].hint, "did you mean [ndbd]?");
    }
}
