//! Statements and their canonical form; precedence; what must be refused; and bytes that make no sense at
//! all.

use super::ast::{Expr, Lit, SelectItem, Stmt};
use super::*;

mod statements;

fn mode() -> ParseMode {
    ParseMode::default()
}

/// Parses one statement, prints it, parses that and prints again: both prints must agree. Returns the print.
fn canonical(sql: &str) -> String {
    canonical_in(sql, mode())
}

fn canonical_in(sql: &str, mode: ParseMode) -> String {
    let parsed = parse(sql.as_bytes(), mode).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    let printed = parsed.stmt.to_string();
    let again =
        parse(printed.as_bytes(), mode).unwrap_or_else(|e| panic!("{sql}\nprinted as {printed}\n{e}"));
    assert_eq!(again.stmt.to_string(), printed, "{sql}");
    assert_eq!(again.params, parsed.params, "{sql}");
    printed
}

fn check(table: &[(&str, &str)]) {
    for (sql, expect) in table {
        let expect = if *expect == "=" { sql } else { expect };
        assert_eq!(canonical(sql), *expect, "{sql}");
    }
}

/// The printer of an expression, with every operator in parentheses.
fn grouped(expr: &Expr) -> String {
    match expr {
        Expr::Binary(op, a, b) => format!("({} {op} {})", grouped(a), grouped(b)),
        Expr::And(all) => format!("({})", all.iter().map(grouped).collect::<Vec<_>>().join(" AND ")),
        Expr::Or(all) => format!("({})", all.iter().map(grouped).collect::<Vec<_>>().join(" OR ")),
        Expr::Unary(op, a) => format!("({op:?} {})", grouped(a)),
        Expr::Between { expr, low, high, .. } => {
            format!("({} BETWEEN {} AND {})", grouped(expr), grouped(low), grouped(high))
        }
        Expr::Is { expr, test, .. } => format!("({} IS {test:?})", grouped(expr)),
        Expr::Like { expr, pattern, .. } => format!("({} LIKE {})", grouped(expr), grouped(pattern)),
        Expr::In { expr, list, .. } => {
            format!("({} IN [{}])", grouped(expr), list.iter().map(grouped).collect::<Vec<_>>().join(" "))
        }
        Expr::Collate(a, name) => format!("({} COLLATE {name})", grouped(a)),
        Expr::DateArith { expr, amount, unit, sub } => {
            format!("({} {} {} {unit})", grouped(expr), if *sub { '-' } else { '+' }, grouped(amount))
        }
        Expr::Cast { expr, ty } => format!("({} AS {ty})", grouped(expr)),
        other => other.to_string(),
    }
}

#[test]
fn precedence() {
    for (sql, expect) in [
        ("1 + 2 * 3", "(1 + (2 * 3))"),
        ("1 - 2 - 3", "((1 - 2) - 3)"),
        ("a OR b AND c XOR d", "(a OR ((b AND c) XOR d))"),
        ("a || b && c", "(a OR (b AND c))"),
        ("NOT a = b", "(Not (a = b))"),
        ("! a = b", "((Not a) = b)"),
        ("NOT a AND b", "((Not a) AND b)"),
        ("NOT a BETWEEN 1 AND 2 AND b", "((Not (a BETWEEN 1 AND 2)) AND b)"),
        ("a = b = c", "((a = b) = c)"),
        ("a = b IN (1)", "(a = (b IN [1]))"),
        ("a IN (1) = b", "((a IN [1]) = b)"),
        ("a | b & c << d + e", "(a | (b & (c << (d + e))))"),
        ("a ^ b * c", "((a ^ b) * c)"),
        ("-a ^ b", "((Neg a) ^ b)"),
        ("- a COLLATE x", "(Neg (a COLLATE x))"),
        ("~ - ! a", "(BitNot (Neg (Not a)))"),
        ("a DIV b MOD c % d / e", "((((a DIV b) % c) % d) / e)"),
        ("a LIKE b AND c", "((a LIKE b) AND c)"),
        ("a IS NULL IS NULL", "((a IS Null) IS Null)"),
        ("a < b IS NOT TRUE", "((a < b) IS True)"),
        ("a + INTERVAL 1 DAY - INTERVAL b + 1 HOUR", "((a + 1 DAY) - (b + 1) HOUR)"),
        ("INTERVAL 1 DAY + a", "(a + 1 DAY)"),
        ("a + INTERVAL (1) * 2 DAY", "(a + (1 * 2) DAY)"),
        ("INTERVAL(a, b) + 1", "(INTERVAL(a, b) + 1)"),
        ("1 + INTERVAL(a, b) * 2", "(1 + (INTERVAL(a, b) * 2))"),
        ("BINARY a = b", "((a AS BINARY) = b)"),
        ("a BETWEEN 1 AND 2 OR b", "((a BETWEEN 1 AND 2) OR b)"),
        ("a BETWEEN b + 1 AND c | 2", "(a BETWEEN (b + 1) AND (c | 2))"),
        ("(((a)))", "a"),
        ("a AND b AND c AND d", "(a AND b AND c AND d)"),
        ("a <=> b != c", "((a <=> b) <> c)"),
        ("- -1", "(Neg (Neg 1))"),
    ] {
        let expr = parse_expr(sql.as_bytes(), mode()).unwrap_or_else(|e| panic!("{sql}\n{e}"));
        assert_eq!(grouped(&expr), expect, "{sql}");
        let printed = expr.to_string();
        let again =
            parse_expr(printed.as_bytes(), mode()).unwrap_or_else(|e| panic!("{sql}\n{printed}\n{e}"));
        assert_eq!(again, expr, "{sql} printed as {printed}");
    }
}

#[test]
fn modes_change_the_grammar() {
    let pipes = ParseMode { pipes_as_concat: true, ..mode() };
    let expr = parse_expr(b"a || b || c = d", pipes).unwrap();
    assert_eq!(grouped(&expr), "(((a || b) || c) = d)");
    let high = ParseMode { high_not_precedence: true, ..mode() };
    assert_eq!(grouped(&parse_expr(b"NOT a = b", high).unwrap()), "((Not a) = b)");
    let ansi = ParseMode { ansi_quotes: true, ..mode() };
    assert_eq!(canonical_in("SELECT \"a\"\"b\" FROM \"select\"", ansi), "SELECT `a\"b` FROM `select`");
}

#[test]
fn literals() {
    let lit = |sql: &str| match parse_expr(sql.as_bytes(), mode()) {
        Ok(Expr::Lit(lit)) => lit,
        other => panic!("{sql}: {other:?}"),
    };
    assert_eq!(lit("18446744073709551615"), Lit::Int(u64::MAX));
    assert_eq!(lit("18446744073709551616"), Lit::Dec("18446744073709551616".into()));
    assert_eq!(lit("1.50"), Lit::Dec("1.50".into()));
    assert_eq!(lit(".5e1"), Lit::Float(".5e1".into()));
    assert_eq!(lit("'a' 'b' \"c\""), Lit::Str(b"abc"[..].into()));
    assert_eq!(lit("_latin1'x'"), Lit::IntroStr("latin1".into(), b"x"[..].into()));
    assert_eq!(lit("_binary 0xff"), Lit::Hex(Some("binary".into()), [255][..].into()));
    assert_eq!(lit("n'x'"), Lit::IntroStr("utf8mb3".into(), b"x"[..].into()));
    assert_eq!(lit("b'1'"), Lit::Bit(None, [1][..].into()));
    assert_eq!(lit("DATE '2020-01-01'"), Lit::Date("2020-01-01".into()));
    assert_eq!(lit("{ts '2020-01-01 1:2:3'}"), Lit::Timestamp("2020-01-01 1:2:3".into()));
    assert_eq!(lit("TRUE"), Lit::Bool(true));
}

fn item_names(sql: &str) -> Vec<String> {
    let Stmt::Query(query) = parse(sql.as_bytes(), mode()).unwrap().stmt else { panic!("{sql}") };
    let ast::QueryBody::Select(select) = query.body else { panic!("{sql}") };
    select.items.iter().map(|item: &SelectItem| item.name().unwrap_or("*").to_owned()).collect()
}

#[test]
fn column_names_are_the_text_as_written() {
    assert_eq!(
        item_names("SELECT a.b, 1+  1, 'it''s' , count( * ) AS n, NULL x, *, `q w`, now() /* c */ FROM t"),
        ["b", "1+  1", "it's", "n", "x", "*", "q w", "now()"]
    );
}

#[test]
fn syntax_errors_name_the_place() {
    for (sql, near, line) in [
        ("SELEC 1", "SELEC 1", 1),
        ("SELECT 1 FROM", "", 1),
        ("SELECT\n1 FROM t\nWHERE )", ")", 3),
        ("SELECT * FROM t WHERE a = NOT b", "NOT b", 1),
        ("SELECT 1; SELECT 2", "SELECT 2", 1),
        ("SELECT a FROM rank", "rank", 1),
        ("INSERT INTO t VALUES (1", "", 1),
        ("SELECT 'abc", "'abc", 1),
        ("SELECT 1 /* abc", "/* abc", 1),
        ("CREATE TABLE t (a INT NOT)", ")", 1),
        ("SELECT a IN (1) IN (2)", "IN (2)", 1),
        ("SELECT 1 LIMIT -1", "-1", 1),
        ("UPDATE t SET a = 1 LIMIT 1, 2", "", 1),
    ] {
        let error = parse(sql.as_bytes(), mode()).expect_err(sql);
        assert_eq!((error.code, error.sqlstate), (1064, "42000"), "{sql}");
        let expect = format!("right syntax to use near '{near}' at line {line}");
        assert!(error.message.ends_with(&expect), "{sql}\n{}", error.message);
    }
    let long = format!("SELECT 1 FROM WHERE {}", "é".repeat(200));
    let error = parse(long.as_bytes(), mode()).unwrap_err();
    assert!(error.message.contains(&format!("near 'WHERE {}' at", "é".repeat(74))), "{}", error.message);
}

#[test]
fn several_statements_in_one_text() {
    let sql = b" SELECT 1 ; ; INSERT INTO t VALUES ('a;b'); /* x */ ";
    let first = parse_next(sql, mode()).unwrap();
    assert_eq!(first.stmt.to_string(), "SELECT 1");
    assert_eq!(&sql[..first.end], b" SELECT 1");
    let next = first.next.unwrap();
    let second = parse_next(&sql[next..], mode()).unwrap();
    assert_eq!(second.stmt.to_string(), "INSERT INTO t VALUES ('a;b')");
    assert_eq!(second.next, None);
    assert_eq!(parse(b"  -- nothing\n", mode()).unwrap().stmt, Stmt::Empty);
    assert_eq!(parse(b"SELECT ?, ? + ?", mode()).unwrap().params, 3);
}

/// Every construct that nests, far beyond what a stack would bear. Runs on a thread with a worker's stack.
#[test]
fn nesting_is_bounded() {
    let n = 100_000;
    let wrap = |open: &str, core: &str, close: &str| format!("{}{core}{}", open.repeat(n), close.repeat(n));
    let texts = [
        wrap("SELECT (", "1", ")"),
        format!("SELECT {}", wrap("(", "1", ")")),
        format!("SELECT {}", wrap("(SELECT ", "1", ")")),
        format!("SELECT {}1", "NOT ".repeat(n)),
        format!("SELECT {}1", "- ".repeat(n)),
        format!("SELECT 1{}", " + 1".repeat(n)),
        format!("SELECT 1{}", " XOR 1".repeat(n)),
        format!("SELECT 1{}", " IS NULL".repeat(n)),
        format!("SELECT 1{}", " = 1".repeat(n)),
        format!("SELECT a{}", " COLLATE x".repeat(n)),
        format!("SELECT {}", wrap("f(", "1", ")")),
        format!("SELECT {}", wrap("CASE WHEN ", "1", " THEN 1 END")),
        format!("SELECT {}1", "@a := ".repeat(n)),
        format!("SELECT {}1", "INTERVAL (".repeat(n)),
        format!("SELECT 1{}", " + INTERVAL 1 DAY".repeat(n)),
        format!("SELECT 1{}", " UNION SELECT 1".repeat(n)),
        wrap("(", "SELECT 1", ")"),
        format!("SELECT * FROM {}", wrap("(", "t", ")")),
        format!("SELECT * FROM {}", wrap("(SELECT * FROM ", "t", ") x")),
        format!("SELECT * FROM a{}", " LEFT JOIN b".repeat(n)),
        format!("SELECT * FROM a{}", " JOIN b".repeat(n)),
        format!("{}SELECT 1", "EXPLAIN ".repeat(n)),
        format!("{}SELECT 1", "WITH a AS (".repeat(n)),
        format!("SELECT {}1", "{d ".repeat(n)),
        format!("SELECT 1 BETWEEN {}1", "1 AND 1 BETWEEN ".repeat(n)),
        format!("SELECT 1 LIKE {}1", "BINARY ".repeat(n)),
    ];
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || {
            for text in texts {
                let error = parse(text.as_bytes(), mode()).expect_err(&text[..40]);
                assert!(matches!(error.code, 1436 | 1064 | 1116), "{}: {error}", &text[..40]);
            }
            // Long but flat is fine, and what is just below the limit can be printed and dropped.
            for flat in [" OR a = 1", " AND a", ", 1"] {
                let text = format!("SELECT a{}", flat.repeat(n));
                parse(text.as_bytes(), mode()).unwrap();
            }
            let most = MAX_HEIGHT as usize - 10;
            for (open, close) in [("(SELECT ", ")"), ("f(", ")"), ("- ", ""), ("CASE WHEN ", " THEN 1 END")] {
                let text = format!("SELECT {}1{}", open.repeat(most / 4), close.repeat(most / 4));
                let stmt = parse(text.as_bytes(), mode()).unwrap().stmt;
                assert!(stmt.clone().to_string().len() > most / 4);
            }
        })
        .unwrap()
        .join()
        .unwrap();
}

/// A small generator, so that a failing round can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for _ in 0..20_000 {
        let len = random.below(60);
        let bytes: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
        let _ = parse_next(&bytes, mode());
        let mut text = b"SELECT ".to_vec();
        let alphabet = b" '`\"()*/!-#@.,;x0e9?<>=&|\\\n";
        text.extend(bytes.iter().map(|b| alphabet[usize::from(*b) % alphabet.len()]));
        let _ = parse_next(&text, mode());
    }
}

/// Good statements with tokens dropped, doubled and exchanged. What still parses must print and parse again.
#[test]
fn mutated_statements_never_panic() {
    let mut random = Random(0x0dd0_5eed_1bad_f00d);
    let corpus: Vec<Vec<&str>> = statements::ALL
        .iter()
        .flat_map(|table| table.iter())
        .map(|(sql, _)| sql.split(' ').collect())
        .collect();
    let mut parsed = 0;
    for _ in 0..30_000 {
        let mut words = corpus[random.below(corpus.len())].clone();
        for _ in 0..=random.below(3) {
            let at = random.below(words.len());
            match random.below(4) {
                0 if words.len() > 1 => {
                    words.remove(at);
                }
                1 => words.insert(at, words[at]),
                2 => {
                    let other = &corpus[random.below(corpus.len())];
                    words[at] = other[random.below(other.len())];
                }
                _ => {
                    let other = random.below(words.len());
                    words.swap(at, other);
                }
            }
        }
        let sql = words.join(" ");
        if let Ok(ok) = parse(sql.as_bytes(), mode()) {
            parsed += 1;
            // Statements kept as words are printed as words.
            let words = matches!(
                ok.stmt,
                Stmt::Unsupported { .. }
                    | Stmt::Empty
                    | Stmt::Flush(_)
                    | Stmt::Show(_)
                    | Stmt::Xa(_)
                    | Stmt::Reset(_)
            );
            if !words {
                canonical(&sql);
            }
        }
    }
    assert!(parsed > 1000, "only {parsed} mutants parsed");
}
