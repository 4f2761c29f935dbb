//! Regular expressions by table: what the manual promises, ICU's ways, and bad patterns.

use super::super::tests::{check, fails};

#[test]
fn regexp_answers_by_the_manual() {
    check(&[
        ("'Michael!' REGEXP '.*'", "1"),
        ("'new*\\n*line' REGEXP 'new\\\\*.\\\\*line'", "0"),
        ("'a' REGEXP '^[a-d]'", "1"),
        ("'fo\\no' REGEXP '^fo$'", "0"),
        ("'fofo' RLIKE '^f.*$'", "1"),
        ("'Ban' REGEXP '^Ba*n'", "1"),
        ("'pi' REGEXP '^(pi)*$'", "1"),
        ("'pip' NOT REGEXP '^(pi)*$'", "1"),
        ("'abcde' REGEXP 'a[bcd]{3,10}e'", "1"),
        ("'aXbc' REGEXP '^[^a-dXYZ]+$'", "0"),
        ("'justalnums' REGEXP '[[:alnum:]]+'", "1"),
        ("'!!' REGEXP '[[:alnum:]]+'", "0"),
        ("'~' REGEXP '\\\\~'", "1"),
        ("'1+2' REGEXP '1\\\\+2'", "1"),
        ("NULL REGEXP 'a'", "NULL"),
        ("'a' REGEXP NULL", "NULL"),
        ("'a' NOT REGEXP NULL", "NULL"),
        ("12 REGEXP '^1'", "1"),
        ("'abc' REGEXP 'ABC'", "1"),
        ("'abc' COLLATE utf8mb4_bin REGEXP 'ABC'", "0"),
        ("REGEXP_LIKE('abc', 'ABC', 'c')", "0"),
        ("REGEXP_LIKE('abc', 'ABC', 'ci')", "1"),
        ("REGEXP_LIKE('a\\nb', 'a.b')", "0"),
        ("REGEXP_LIKE('a\\nb', 'a.b', 'n')", "1"),
        ("REGEXP_LIKE('a\\rb', 'a.b', 'u')", "1"),
        ("REGEXP_LIKE('a\\nb', '^b$')", "0"),
        ("REGEXP_LIKE('a\\nb', '^b$', 'm')", "1"),
        ("REGEXP_LIKE('a\\r\\nb', 'a$', 'm')", "1"),
        ("REGEXP_LIKE('ab\\n', 'ab$')", "1"),
        ("REGEXP_LIKE('ab\\n\\n', 'ab$')", "0"),
        ("REGEXP_LIKE('a', 'a', NULL)", "NULL"),
        ("REGEXP_LIKE('é', 'e')", "0"),
        ("REGEXP_LIKE('É', 'é')", "1"),
    ]);
}

#[test]
fn positions_and_replacements() {
    check(&[
        ("REGEXP_INSTR('dog cat dog', 'dog')", "1"),
        ("REGEXP_INSTR('dog cat dog', 'dog', 2)", "9"),
        ("REGEXP_INSTR('aa aaa aaaa', 'a{2}')", "1"),
        ("REGEXP_INSTR('aa aaa aaaa', 'a{4}')", "8"),
        ("REGEXP_INSTR('aa aaa', 'a+', 1, 2)", "4"),
        ("REGEXP_INSTR('aa aaa', 'a+', 1, 2, 1)", "7"),
        ("REGEXP_INSTR('aa', 'b')", "0"),
        ("REGEXP_INSTR('grüße 😀x', 'x')", "8"),
        ("REGEXP_INSTR('abc', '$')", "4"),
        ("REGEXP_SUBSTR('abc def ghi', '[a-z]+')", "abc"),
        ("REGEXP_SUBSTR('abc def ghi', '[a-z]+', 1, 3)", "ghi"),
        ("REGEXP_SUBSTR('abc def ghi', '[a-z]+', 1, 4)", "NULL"),
        ("REGEXP_SUBSTR('abc', NULL)", "NULL"),
        ("REGEXP_REPLACE('a b c', 'b', 'X')", "a X c"),
        ("REGEXP_REPLACE('abc def ghi', '[a-z]+', 'X', 1, 3)", "abc def X"),
        ("REGEXP_REPLACE('abc def ghi', '([a-z])([a-z]+)', '$2$1ay')", "bcaay efday higay"),
        ("REGEXP_REPLACE('aab', 'a*', 'X')", "XXbX"),
        ("REGEXP_REPLACE('abc', 'x', 'y')", "abc"),
        ("REGEXP_REPLACE('abc', 'b', '\\\\$1')", "a$1c"),
        ("REGEXP_REPLACE('abc', 'B', 'x', 1, 0, 'c')", "abc"),
        ("REGEXP_REPLACE('2020-01-02', '(?<y>\\\\d+)-(\\\\d+)', '${y}/$2')", "2020/01-02"),
        ("REGEXP_REPLACE('aaa', 'a', 'b', 2)", "abb"),
        ("REGEXP_REPLACE(NULL, 'a', 'b')", "NULL"),
    ]);
}

#[test]
fn features_of_icu() {
    check(&[
        ("'foobar' REGEXP 'foo(?=bar)'", "1"),
        ("'foobaz' REGEXP 'foo(?!baz)'", "0"),
        ("'abab' REGEXP '^(ab)\\\\1$'", "1"),
        ("'aaa' REGEXP '^a++a'", "0"),
        ("'a1' REGEXP '(?<=a)1'", "1"),
        ("'a.c' REGEXP '\\\\Qa.c\\\\E'", "1"),
        ("'abc' REGEXP '\\\\Qa.c\\\\E'", "0"),
        ("'a b' REGEXP 'a\\\\hb'", "1"),
        ("'a\\r\\nb' REGEXP '^a\\\\Rb$'", "1"),
        ("'word' REGEXP '\\\\bword\\\\b'", "1"),
        ("'é' REGEXP '^\\\\u00e9$'", "1"),
        ("'é' REGEXP '^[[:alpha:]]$'", "1"),
        ("'x' REGEXP '[^[:alpha:]]'", "0"),
        ("'m' REGEXP '^[a-z&&[^aeiou]]$'", "1"),
        ("'a' REGEXP '^[a-z&&[^aeiou]]$'", "0"),
        ("'a#b' REGEXP 'a#b'", "1"),
        ("'ab' REGEXP '(?x) a # first\\n b'", "1"),
        ("'a\\nb' REGEXP '(?s)a.b'", "1"),
        ("'AB' COLLATE utf8mb4_bin REGEXP '(?i)ab'", "1"),
        ("']' REGEXP '[]]'", "1"),
        ("'a]' REGEXP 'a]'", "1"),
    ]);
}

#[test]
fn bad_patterns_have_their_numbers() {
    for (sql, code) in [
        ("'a' REGEXP ''", 3685),
        ("'a' REGEXP '[[:nope:]]'", 3685),
        ("REGEXP_INSTR('a', 'a', 0)", 3686),
        ("REGEXP_INSTR('a', 'a', 3)", 3686),
        ("REGEXP_REPLACE('a', 'a', '$2')", 3686),
        ("'a' REGEXP '*a'", 3688),
        ("'a' REGEXP 'a\\\\'", 3689),
        ("'a' REGEXP '\\\\i'", 3689),
        ("'a' REGEXP '\\\\X'", 3690),
        ("'a' REGEXP '(a'", 3691),
        ("'a' REGEXP 'a)'", 3691),
        ("'a' REGEXP 'a{x}'", 3692),
        ("'a' REGEXP 'a{3,2}'", 3693),
        ("'a' REGEXP '\\\\2'", 3694),
        ("'a' REGEXP '[a'", 3696),
        ("'a' REGEXP '[z-a]'", 3697),
        ("REGEXP_LIKE(CONCAT(REPEAT('x', 40), 'yz'), '(x+x+)+y(?!z)')", 3699),
        ("'a' REGEXP REPEAT('(a', 100)", 3700),
        ("'a' REGEXP '((a{1000}){1000}){1000}'", 3700),
        ("REGEXP_REPLACE('a', 'a', '$x')", 3887),
        ("REGEXP_LIKE('a', 'a', 'z')", 1210),
        ("REGEXP_INSTR('a', 'a', 1, 1, 2)", 1210),
        ("REGEXP_LIKE('a')", 1582),
        ("_binary'a' REGEXP 'a'", 3995),
    ] {
        assert_eq!(fails(sql), code, "{sql}");
    }
}

#[test]
fn no_pattern_panics() {
    // Every short pattern over the characters that mean something.
    let letters: Vec<char> = r"a\[]().*?+{}^$|-,1:&<>=!#Q".chars().collect();
    let options = super::Options {
        fold_case: true,
        multi_line: false,
        dot_all: false,
        unix_lines: false,
        line_end_at_tail: true,
    };
    let mut checked = 0;
    for a in &letters {
        for b in &letters {
            for c in &letters {
                for tail in ["", "]b)"] {
                    let pattern: String = [*a, *b, *c].iter().collect::<String>() + tail;
                    if let Ok(regex) = super::compile(&pattern, options) {
                        let _ = regex.is_match("ab\n");
                        checked += 1;
                    }
                }
            }
        }
    }
    assert!(checked > 5_000, "{checked}");
}
