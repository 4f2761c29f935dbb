//! Tables of statements with their canonical form; `=` where they are canonical already.

use super::{canonical, check};

pub(super) const ALL: &[&[(&str, &str)]] = &[QUERIES, CHANGES, SCHEMA, SESSION, SHOWS, USERS];

const QUERIES: &[(&str, &str)] = &[
    ("SELECT 1", "="),
    ("select c from sbtest1 where id=123", "SELECT c FROM sbtest1 WHERE id = 123"),
    ("SELECT DISTINCT c FROM t WHERE id BETWEEN 1 AND 9 ORDER BY c", "="),
    ("SELECT *, t.*, `d b`.t.* FROM `d b`.t", "="),
    ("SELECT a AS x, b y, c 'z w' FROM t AS u", "SELECT a AS x, b AS y, c AS `z w` FROM t AS u"),
    (
        "SELECT SQL_CALC_FOUND_ROWS HIGH_PRIORITY a FROM t",
        "SELECT HIGH_PRIORITY SQL_CALC_FOUND_ROWS a FROM t",
    ),
    ("SELECT 1 FROM DUAL WHERE 1", "SELECT 1 WHERE 1"),
    ("SELECT a FROM t, u JOIN v ON t.a = v.a", "SELECT a FROM t, u JOIN v ON t.a = v.a"),
    (
        "SELECT * FROM a LEFT OUTER JOIN b USING (x, y) NATURAL RIGHT JOIN c CROSS JOIN d STRAIGHT_JOIN e",
        "SELECT * FROM a LEFT JOIN b USING (x, y) NATURAL RIGHT JOIN c JOIN d STRAIGHT_JOIN e",
    ),
    (
        "SELECT * FROM a LEFT JOIN b JOIN c ON b.x = c.x ON a.y = b.y",
        "SELECT * FROM a LEFT JOIN (b JOIN c ON b.x = c.x) ON a.y = b.y",
    ),
    ("SELECT * FROM (a, b) JOIN c", "="),
    ("SELECT * FROM ((SELECT 1) UNION (SELECT 2)) t", "SELECT * FROM ((SELECT 1) UNION (SELECT 2)) AS t"),
    ("SELECT * FROM ((SELECT 1 AS a) t JOIN u)", "SELECT * FROM (SELECT 1 AS a) AS t JOIN u"),
    ("SELECT * FROM (SELECT a, b FROM t) AS d (x, y) WHERE x > 1", "="),
    (
        "SELECT * FROM t PARTITION (p0, p1) AS u USE INDEX (a, PRIMARY) IGNORE KEY FOR ORDER BY (b)",
        "SELECT * FROM t PARTITION (p0, p1) AS u USE INDEX (a, `PRIMARY`) IGNORE INDEX FOR ORDER BY (b)",
    ),
    (
        "SELECT a, COUNT(*) FROM t GROUP BY a, b + 1 WITH ROLLUP HAVING COUNT(*) > 1 ORDER BY 2 DESC, a ASC LIMIT 5",
        "SELECT a, COUNT(*) FROM t GROUP BY a, b + 1 WITH ROLLUP HAVING COUNT(*) > 1 ORDER BY 2 DESC, a LIMIT 5",
    ),
    ("SELECT a FROM t LIMIT 10 OFFSET 20", "SELECT a FROM t LIMIT 20, 10"),
    ("SELECT a FROM t LIMIT ?, ?", "="),
    ("SELECT a FROM t FOR UPDATE", "="),
    ("SELECT a FROM t LOCK IN SHARE MODE", "SELECT a FROM t FOR SHARE"),
    ("SELECT a FROM t FOR SHARE OF t SKIP LOCKED", "="),
    ("SELECT a FROM t FOR UPDATE NOWAIT", "="),
    ("SELECT 1 UNION SELECT 2 UNION ALL SELECT 3 ORDER BY 1 LIMIT 2", "="),
    ("(SELECT 1 LIMIT 1) UNION (SELECT 2) INTERSECT SELECT 3", "="),
    ("(SELECT 1)", "SELECT 1"),
    ("((SELECT 1 LIMIT 1) LIMIT 2)", "(SELECT 1 LIMIT 1) LIMIT 2"),
    ("VALUES ROW(1, 2), ROW(3, 4) ORDER BY 1", "="),
    ("TABLE t ORDER BY a LIMIT 1", "="),
    ("WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT * FROM c", "="),
    ("SELECT a INTO @x FROM t", "SELECT a FROM t INTO @x"),
    (
        "SELECT a INTO OUTFILE '/tmp/x' FIELDS TERMINATED BY ',' FROM t",
        "SELECT a FROM t INTO OUTFILE '/tmp/x' FIELDS TERMINATED BY ','",
    ),
    (
        "SELECT COUNT(DISTINCT a, b), SUM(DISTINCT c), AVG(ALL d), MIN(e), MAX(f), STD(g) FROM t",
        "SELECT COUNT(DISTINCT a, b), SUM(DISTINCT c), AVG(d), MIN(e), MAX(f), STD(g) FROM t",
    ),
    ("SELECT GROUP_CONCAT(DISTINCT a ORDER BY b DESC SEPARATOR '; ') FROM t", "="),
    (
        "SELECT count, status, date, value, `rank`, t.rank, t.`select`, t.select FROM `groups` t",
        "SELECT count, status, date, value, `rank`, t.`rank`, t.`select`, t.`select` FROM `groups` AS t",
    ),
    (
        "SELECT IF(a, 1, 2), LEFT(b, 3), REPLACE(c, 'x', 'y'), MOD(5, 3), CHAR(77, 78 USING utf8mb4)",
        "SELECT IF(a, 1, 2), LEFT(b, 3), REPLACE(c, 'x', 'y'), MOD(5, 3), CONVERT(CHAR(77, 78) USING utf8mb4)",
    ),
    (
        "SELECT CURRENT_TIMESTAMP, CURRENT_TIMESTAMP(3), NOW(), CURRENT_DATE, LOCALTIME(), UTC_TIME, CURRENT_USER",
        "SELECT NOW(), NOW(3), NOW(), CURDATE(), NOW(), UTC_TIME(), CURRENT_USER()",
    ),
    (
        "SELECT SUBSTRING(a FROM 2 FOR 3), SUBSTR(a, 2), TRIM(LEADING 'x' FROM a), TRIM(a), TRIM('y' FROM a), TRIM(TRAILING FROM a)",
        "SELECT SUBSTRING(a, 2, 3), SUBSTRING(a, 2), TRIM(LEADING 'x' FROM a), TRIM(a), TRIM(BOTH 'y' FROM a), TRIM(TRAILING FROM a)",
    ),
    (
        "SELECT POSITION('a' IN b), EXTRACT(DAY_HOUR FROM c), DATE_ADD(d, INTERVAL 1 MONTH), SUBDATE(d, 3), TIMESTAMPDIFF(SQL_TSI_DAY, a, b)",
        "SELECT LOCATE('a', b), EXTRACT(DAY_HOUR FROM c), d + INTERVAL 1 MONTH, d - INTERVAL 3 DAY, TIMESTAMPDIFF(DAY, a, b)",
    ),
    (
        "SELECT CAST(a AS SIGNED), CAST(b AS CHAR(10) CHARACTER SET latin1), CONVERT(c, DECIMAL(10,2)), CONVERT(d USING utf8mb4), BINARY e",
        "SELECT CAST(a AS SIGNED), CAST(b AS CHAR(10) CHARACTER SET latin1), CAST(c AS DECIMAL(10,2)), CONVERT(d USING utf8mb4), CAST(e AS BINARY)",
    ),
    ("SELECT CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' ELSE 'z' END, CASE WHEN a THEN b END", "="),
    (
        "SELECT (a, b) IN ((1, 2), (3, 4)), ROW(1, 2) = (1, 2)",
        "SELECT (a, b) IN ((1, 2), (3, 4)), (1, 2) = (1, 2)",
    ),
    (
        "SELECT a IN (SELECT b FROM t), EXISTS (SELECT 1), (SELECT 1), a = ANY (SELECT 2), a > ALL (SELECT 3)",
        "=",
    ),
    (
        "SELECT a NOT LIKE 'x%' ESCAPE '|', b NOT REGEXP '^a', c RLIKE d, e NOT IN (1, 2), f NOT BETWEEN 1 AND 2",
        "SELECT a NOT LIKE 'x%' ESCAPE '|', b NOT REGEXP '^a', c REGEXP d, e NOT IN (1, 2), f NOT BETWEEN 1 AND 2",
    ),
    ("SELECT a IS NOT NULL, b IS TRUE, c IS NOT UNKNOWN, d <=> NULL", "="),
    (
        "SELECT @a, @a.b, @'x y', @@version, @@global.max_connections, @@session.sql_mode, @@local.autocommit",
        "SELECT @a, @a.b, @`x y`, @@version, @@GLOBAL.max_connections, @@SESSION.sql_mode, @@SESSION.autocommit",
    ),
    ("SELECT @a := 1, @b := @a + 1", "="),
    ("SELECT j->'$.a', t.j->>'$.b' FROM t", "="),
    ("SELECT MATCH (a, b) AGAINST ('x' IN BOOLEAN MODE) FROM t", "="),
    (
        "SELECT RANK() OVER (PARTITION BY a ORDER BY b DESC ROWS UNBOUNDED PRECEDING), SUM(x) OVER w FROM t WINDOW w AS (ORDER BY a)",
        "=",
    ),
    ("SELECT a SOUNDS LIKE b, 1 MEMBER OF ('[1]')", "="),
    ("SELECT 'a\\'b', \"it's\", 'x\\ny', '\\%\\_'", "SELECT 'a''b', 'it''s', 'x\\ny', '\\\\%\\\\_'"),
    (
        "SELECT x'4D', 0x4D4E, b'101', 0b1, N'x', _utf8mb4'y'",
        "SELECT x'4D', x'4D4E', b'00000101', b'00000001', _utf8mb3 'x', _utf8mb4 'y'",
    ),
    (
        "SELECT - -1, -(-a), NOT NOT a, !(a AND b), (a OR b) AND c, (a = b) = c, a = (b = c)",
        "SELECT - -1, - -a, NOT NOT a, NOT (a AND b), (a OR b) AND c, a = b = c, a = (b = c)",
    ),
    ("SELECT 1 /*! + 1 */ /*!99999 + 1 */ -- end", "SELECT 1 + 1"),
    (
        "SELECT DEFAULT(a), INTERVAL(3, 1, 2), db1.f(1), f ()",
        "SELECT DEFAULT(a), INTERVAL(3, 1, 2), db1.f(1), f()",
    ),
    (
        "SELECT 5 DIV 2, 5 MOD 2, 5 % 2, ~1, 1 << 2 >> 1, 1 ^ 2 | 3 & 4",
        "SELECT 5 DIV 2, 5 % 2, 5 % 2, ~1, 1 << 2 >> 1, 1 ^ 2 | 3 & 4",
    ),
    ("DO SLEEP(1), 2", "="),
];

const CHANGES: &[(&str, &str)] = &[
    ("INSERT INTO t VALUES (1, 'a', NULL, DEFAULT)", "="),
    ("INSERT t (a, t.b) VALUE (1, 2), (3, 4)", "INSERT INTO t (a, t.b) VALUES (1, 2), (3, 4)"),
    ("INSERT IGNORE INTO d.t () VALUES ()", "="),
    ("INSERT INTO t SET a = 1, b = DEFAULT", "INSERT INTO t (a, b) VALUES (1, DEFAULT)"),
    ("INSERT LOW_PRIORITY INTO t (a) SELECT b FROM u WHERE b > 1", "="),
    ("INSERT INTO t (SELECT 1)", "INSERT INTO t SELECT 1"),
    ("INSERT INTO t (a) (SELECT 1)", "INSERT INTO t (a) SELECT 1"),
    ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = VALUES(a) + 1, b = b", "="),
    ("INSERT INTO t VALUES (1) AS new(x) ON DUPLICATE KEY UPDATE a = new.x", "="),
    ("REPLACE INTO t PARTITION (p0) (a) VALUES (?)", "="),
    ("REPLACE DELAYED t VALUES (1)", "REPLACE DELAYED INTO t VALUES (1)"),
    ("UPDATE t SET a = a + 1, t.b = DEFAULT WHERE id = 1 ORDER BY id DESC LIMIT 1", "="),
    ("UPDATE LOW_PRIORITY IGNORE t, u SET t.a = u.a WHERE t.id = u.id", "="),
    ("UPDATE t JOIN u ON t.id = u.id SET t.a := 1", "UPDATE t JOIN u ON t.id = u.id SET t.a = 1"),
    ("DELETE FROM t WHERE id = 1", "="),
    ("DELETE LOW_PRIORITY QUICK IGNORE FROM t AS x ORDER BY a LIMIT 3", "="),
    ("DELETE t, d.u.* FROM t JOIN u USING (id)", "DELETE t, d.u FROM t JOIN u USING (id)"),
    ("DELETE FROM t, u USING t JOIN u WHERE t.a = u.a", "DELETE t, u FROM t JOIN u WHERE t.a = u.a"),
    ("WITH c AS (SELECT 1) DELETE FROM t WHERE a IN (SELECT * FROM c)", "="),
    ("TRUNCATE t", "TRUNCATE TABLE t"),
];

const SCHEMA: &[(&str, &str)] = &[
    (
        "CREATE SCHEMA IF NOT EXISTS d DEFAULT CHARSET utf8mb4 COLLATE = utf8mb4_bin",
        "CREATE DATABASE IF NOT EXISTS d CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    ),
    ("ALTER DATABASE d CHARACTER SET latin1", "="),
    ("DROP SCHEMA IF EXISTS d", "DROP DATABASE IF EXISTS d"),
    (
        "CREATE TABLE sbtest1(id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, PRIMARY KEY (id)) /*! ENGINE = ndbcluster */",
        "CREATE TABLE sbtest1 (id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT '0', c CHAR(120) NOT NULL DEFAULT '', PRIMARY KEY (id)) ENGINE = ndbcluster",
    ),
    (
        "CREATE TABLE t (a TINYINT(1) UNSIGNED ZEROFILL, b BOOL, c BIGINT UNSIGNED, d MEDIUMINT, e SMALLINT(5))",
        "CREATE TABLE t (a TINYINT(1) UNSIGNED ZEROFILL, b TINYINT(1), c BIGINT UNSIGNED, d MEDIUMINT, e SMALLINT(5))",
    ),
    (
        "CREATE TABLE t (a DECIMAL(10, 2), b NUMERIC, c FLOAT(7,3), d FLOAT(30), e DOUBLE PRECISION UNSIGNED, f REAL, g BIT(8), h DEC(5))",
        "CREATE TABLE t (a DECIMAL(10,2), b DECIMAL, c FLOAT(7,3), d DOUBLE, e DOUBLE UNSIGNED, f DOUBLE, g BIT(8), h DECIMAL(5))",
    ),
    (
        "CREATE TABLE t (a VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, b NCHAR(3), c CHAR BINARY, d TEXT(100), e LONG VARCHAR, f TINYBLOB, g BINARY(3), h VARBINARY(9), i ENUM('x','y'), j SET('a') CHARSET latin1)",
        "CREATE TABLE t (a VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, b CHAR(3) CHARACTER SET utf8mb3, c CHAR BINARY, d TEXT(100), e MEDIUMTEXT, f TINYBLOB, g BINARY(3), h VARBINARY(9), i ENUM('x','y'), j SET('a') CHARACTER SET latin1)",
    ),
    (
        "CREATE TABLE t (a DATE, b TIME(3), c DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE NOW(6), d TIMESTAMP NULL DEFAULT NULL, e YEAR(4), f JSON, g POINT SRID 4326)",
        "CREATE TABLE t (a DATE, b TIME(3), c DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), d TIMESTAMP NULL DEFAULT NULL, e YEAR, f JSON, g POINT SRID 4326)",
    ),
    (
        "CREATE TABLE t (a INT DEFAULT -1, b INT DEFAULT (a + 1), c INT AS (a * 2) STORED NOT NULL, d INT GENERATED ALWAYS AS (a) VIRTUAL, e SERIAL)",
        "CREATE TABLE t (a INT DEFAULT -1, b INT DEFAULT (a + 1), c INT AS (a * 2) STORED NOT NULL, d INT AS (a) VIRTUAL, e BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE KEY)",
    ),
    (
        "CREATE TABLE t (a INT PRIMARY KEY COMMENT 'x' COLUMN_FORMAT FIXED STORAGE DISK, b INT UNIQUE KEY INVISIBLE CHECK (b > 0) NOT ENFORCED, c INT REFERENCES u (x) ON DELETE CASCADE)",
        "CREATE TABLE t (a INT PRIMARY KEY COMMENT 'x' COLUMN_FORMAT FIXED STORAGE DISK, b INT INVISIBLE UNIQUE KEY CHECK (b > 0) NOT ENFORCED, c INT REFERENCES u (x) ON DELETE CASCADE)",
    ),
    (
        "CREATE TABLE IF NOT EXISTS d.t (a INT, b INT, PRIMARY KEY USING HASH (a), UNIQUE INDEX u (b) USING HASH, INDEX (a, b DESC), KEY k (a(10)) COMMENT 'c', FULLTEXT f (b), CONSTRAINT x FOREIGN KEY (a) REFERENCES u (c) ON UPDATE SET NULL ON DELETE NO ACTION, CONSTRAINT ch CHECK (a > 0), KEY e ((a + 1)))",
        "CREATE TABLE IF NOT EXISTS d.t (a INT, b INT, PRIMARY KEY (a) USING HASH, UNIQUE KEY u (b) USING HASH, KEY (a, b DESC), KEY k (a(10)) COMMENT 'c', FULLTEXT KEY f (b), KEY e ((a + 1)), CONSTRAINT x FOREIGN KEY (a) REFERENCES u (c) ON DELETE NO ACTION ON UPDATE SET NULL, CONSTRAINT ch CHECK (a > 0))",
    ),
    (
        "CREATE TABLE t (a INT) ENGINE=NDB, COMMENT='NDB_TABLE=READ_BACKUP=1' DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_0900_ai_ci AUTO_INCREMENT=10 ROW_FORMAT=DYNAMIC MAX_ROWS 100 KEY_BLOCK_SIZE=8 TABLESPACE ts STORAGE DISK",
        "CREATE TABLE t (a INT) ENGINE = NDB COMMENT = 'NDB_TABLE=READ_BACKUP=1' CHARACTER SET = utf8mb4 COLLATE = utf8mb4_0900_ai_ci AUTO_INCREMENT = 10 ROW_FORMAT = DYNAMIC MAX_ROWS = 100 KEY_BLOCK_SIZE = 8 TABLESPACE = ts STORAGE DISK",
    ),
    (
        "CREATE TABLE t (a INT PRIMARY KEY) ENGINE = NDB PARTITION BY LINEAR KEY ALGORITHM=2 (a) PARTITIONS 8",
        "CREATE TABLE t (a INT PRIMARY KEY) ENGINE = NDB PARTITION BY LINEAR KEY ALGORITHM = 2 (a) PARTITIONS 8",
    ),
    ("CREATE TABLE t (a INT) PARTITION BY KEY ()", "="),
    (
        "CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10) ENGINE = NDB NODEGROUP = 1, PARTITION p1 VALUES LESS THAN MAXVALUE)",
        "=",
    ),
    (
        "CREATE TABLE t (a INT, b INT) PARTITION BY LIST COLUMNS (a, b) SUBPARTITION BY HASH (a) SUBPARTITIONS 2 (PARTITION p VALUES IN ((1, 2), (3, NULL)) (SUBPARTITION s0, SUBPARTITION s1))",
        "=",
    ),
    ("CREATE TABLE t (a INT) PARTITION BY RANGE COLUMNS (a) (PARTITION p VALUES LESS THAN (MAXVALUE))", "="),
    ("CREATE TEMPORARY TABLE t LIKE d.u", "="),
    ("CREATE TABLE t (LIKE u)", "CREATE TABLE t LIKE u"),
    ("CREATE TABLE t (a INT) IGNORE SELECT 1 AS a", "CREATE TABLE t (a INT) IGNORE AS SELECT 1 AS a"),
    ("CREATE TABLE t AS SELECT * FROM u", "="),
    (
        "CREATE UNIQUE INDEX i USING BTREE ON t (a, b(3)) COMMENT 'x' ALGORITHM=INPLACE LOCK=DEFAULT",
        "CREATE UNIQUE INDEX i ON t (a, b(3)) USING BTREE COMMENT 'x' ALGORITHM = INPLACE LOCK = DEFAULT",
    ),
    ("DROP INDEX i ON t", "="),
    ("DROP TABLE IF EXISTS a, d.b CASCADE", "DROP TABLE IF EXISTS a, d.b"),
    ("RENAME TABLE a TO b, c TO d.e", "="),
    (
        "ALTER TABLE t ADD COLUMN a INT FIRST, ADD b INT NOT NULL AFTER a, ADD (c INT, d INT), DROP e, DROP COLUMN f",
        "ALTER TABLE t ADD COLUMN a INT FIRST, ADD COLUMN b INT NOT NULL AFTER a, ADD COLUMN (c INT, d INT), DROP COLUMN e, DROP COLUMN f",
    ),
    (
        "ALTER TABLE t ADD INDEX i (a), ADD UNIQUE (b), ADD PRIMARY KEY (c), ADD CONSTRAINT f FOREIGN KEY (d) REFERENCES u (e), DROP KEY k, DROP PRIMARY KEY, DROP FOREIGN KEY g, DROP CHECK h",
        "ALTER TABLE t ADD KEY i (a), ADD UNIQUE KEY (b), ADD PRIMARY KEY (c), ADD CONSTRAINT f FOREIGN KEY (d) REFERENCES u (e), DROP KEY k, DROP PRIMARY KEY, DROP FOREIGN KEY g, DROP CONSTRAINT h",
    ),
    (
        "ALTER TABLE t MODIFY a BIGINT, CHANGE b c INT AFTER a, ALTER COLUMN d SET DEFAULT 5, ALTER e DROP DEFAULT, ALTER INDEX i INVISIBLE",
        "ALTER TABLE t MODIFY COLUMN a BIGINT, CHANGE COLUMN b c INT AFTER a, ALTER COLUMN d SET DEFAULT 5, ALTER COLUMN e DROP DEFAULT, ALTER INDEX i INVISIBLE",
    ),
    ("ALTER TABLE t RENAME COLUMN a TO b, RENAME INDEX i TO j, RENAME TO d.u", "="),
    (
        "ALTER TABLE t ENGINE=NDB COMMENT='NDB_TABLE=NOLOGGING=1', CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, ALGORITHM=INPLACE, LOCK=NONE",
        "ALTER TABLE t ENGINE = NDB, COMMENT = 'NDB_TABLE=NOLOGGING=1', CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, ALGORITHM = INPLACE, LOCK = NONE",
    ),
    ("ALTER TABLE t ALGORITHM = INPLACE, REORGANIZE PARTITION", "="),
    ("ALTER TABLE t ADD PARTITION (PARTITION p2 VALUES LESS THAN (20))", "="),
    ("ALTER TABLE t DROP PARTITION p0, p1", "="),
    ("ALTER TABLE t TRUNCATE PARTITION ALL", "="),
    ("ALTER TABLE t REORGANIZE PARTITION p0 INTO (PARTITION n0 VALUES LESS THAN (5))", "="),
    ("ALTER TABLE t OPTIMIZE PARTITION p0", "="),
    ("ALTER TABLE t PARTITION BY HASH (a) PARTITIONS 4", "="),
    ("ALTER TABLE t REMOVE PARTITIONING", "="),
    ("ALTER TABLE t DISABLE KEYS", "="),
    ("ALTER TABLE t", "="),
    (
        "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW v (a) AS SELECT 1 WITH CHECK OPTION",
        "CREATE OR REPLACE VIEW v (a) AS SELECT 1",
    ),
    ("DROP VIEW IF EXISTS v, w", "="),
    ("CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW BEGIN SET NEW.a = 1; END", "="),
    ("DROP PROCEDURE IF EXISTS p", "="),
    ("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", "="),
];

const SESSION: &[(&str, &str)] = &[
    ("BEGIN", "START TRANSACTION"),
    ("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", "="),
    ("COMMIT WORK AND NO CHAIN RELEASE", "COMMIT AND NO CHAIN RELEASE"),
    ("ROLLBACK", "="),
    ("ROLLBACK TO s", "ROLLBACK TO SAVEPOINT s"),
    ("SAVEPOINT s", "="),
    ("RELEASE SAVEPOINT s", "="),
    ("SET NAMES utf8mb4", "="),
    ("SET NAMES 'latin1' COLLATE 'latin1_bin'", "SET NAMES latin1 COLLATE latin1_bin"),
    ("SET CHARACTER SET DEFAULT", "="),
    (
        "SET @a = 1, @b := 'x', autocommit = 0, SESSION sql_mode = '', GLOBAL max_connections = 10",
        "SET @a = 1, @b = 'x', @@autocommit = 0, @@SESSION.sql_mode = '', @@GLOBAL.max_connections = 10",
    ),
    (
        "SET @@session.x = DEFAULT, @@y = ON, PERSIST z = OFF",
        "SET @@SESSION.x = DEFAULT, @@y = `ON`, @@PERSIST.z = OFF",
    ),
    (
        "SET character_set_results = NULL, sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')",
        "SET @@character_set_results = NULL, @@sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')",
    ),
    ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY", "="),
    ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "="),
    ("SET PASSWORD FOR 'u'@'h' = 'secret'", "="),
    ("USE `d b`", "="),
    ("LOCK TABLES a READ LOCAL, b AS x WRITE", "="),
    ("UNLOCK TABLES", "="),
    ("PREPARE s FROM 'SELECT ?'", "="),
    ("EXECUTE s USING @a, @b", "="),
    ("DROP PREPARE s", "DEALLOCATE PREPARE s"),
    ("DESC t a", "DESCRIBE t 'a'"),
    ("EXPLAIN FORMAT=JSON SELECT 1", "EXPLAIN FORMAT = JSON SELECT 1"),
    ("DESCRIBE UPDATE t SET a = 1", "EXPLAIN UPDATE t SET a = 1"),
    ("EXPLAIN ANALYZE SELECT 1", "="),
    ("KILL QUERY 5", "="),
    ("FLUSH TABLES a, b WITH READ LOCK", "="),
    ("FLUSH LOCAL PRIVILEGES, BINARY LOGS", "FLUSH PRIVILEGES, BINARY LOGS"),
    ("ANALYZE NO_WRITE_TO_BINLOG TABLE a, b", "ANALYZE TABLE a, b"),
    ("CHECK TABLE t QUICK", "="),
    ("OPTIMIZE TABLE t", "="),
    ("XA START 'x'", "="),
    ("HELP 'select'", "="),
];

const SHOWS: &[(&str, &str)] = &[
    ("SHOW SCHEMAS LIKE 'a%'", "SHOW DATABASES LIKE 'a%'"),
    ("SHOW FULL TABLES IN d WHERE Table_type = 'VIEW'", "SHOW FULL TABLES FROM d WHERE Table_type = 'VIEW'"),
    ("SHOW FIELDS FROM t FROM d", "SHOW COLUMNS FROM d.t"),
    ("SHOW FULL COLUMNS FROM t LIKE 'a'", "="),
    ("SHOW KEYS FROM t", "SHOW INDEX FROM t"),
    ("SHOW CREATE TABLE d.t", "="),
    ("SHOW CREATE DATABASE IF NOT EXISTS d", "="),
    ("SHOW WARNINGS LIMIT 1, 5", "="),
    ("SHOW ERRORS", "="),
    ("SHOW COUNT(*) WARNINGS", "="),
    ("SHOW GLOBAL VARIABLES LIKE 'x'", "="),
    ("SHOW LOCAL STATUS", "SHOW SESSION STATUS"),
    ("SHOW STORAGE ENGINES", "SHOW ENGINES"),
    ("SHOW ENGINE NDB STATUS", "="),
    ("SHOW TABLE STATUS FROM d LIKE 't'", "="),
    ("SHOW FULL PROCESSLIST", "="),
    ("SHOW CHARSET", "SHOW CHARACTER SET"),
    ("SHOW COLLATION WHERE Charset = 'utf8mb4'", "="),
    ("SHOW GRANTS FOR CURRENT_USER", "SHOW GRANTS FOR CURRENT_USER()"),
    ("SHOW PRIVILEGES", "="),
    ("SHOW PLUGINS", "="),
    ("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"),
    ("SHOW SLAVE STATUS FOR CHANNEL 'x'", "SHOW REPLICA STATUS"),
    ("SHOW REPLICAS", "="),
    ("SHOW MASTER LOGS", "SHOW BINARY LOGS"),
    ("SHOW TRIGGERS FROM d", "="),
    ("SHOW PROCEDURE STATUS LIKE 'p'", "="),
    ("SHOW BINLOG EVENTS IN 'x' LIMIT 5", "="),
];

const USERS: &[(&str, &str)] = &[
    (
        "CREATE USER IF NOT EXISTS u@localhost IDENTIFIED BY 'p', 'v'@'10.%' IDENTIFIED WITH mysql_native_password AS '*ABC' REQUIRE SSL WITH MAX_QUERIES_PER_HOUR 5 PASSWORD EXPIRE NEVER ACCOUNT LOCK",
        "CREATE USER IF NOT EXISTS 'u'@'localhost' IDENTIFIED BY 'p', 'v'@'10.%' IDENTIFIED WITH 'mysql_native_password' AS '*ABC' REQUIRE SSL WITH MAX_QUERIES_PER_HOUR 5 PASSWORD EXPIRE NEVER ACCOUNT LOCK",
    ),
    ("ALTER USER USER() IDENTIFIED BY 'x'", "ALTER USER CURRENT_USER() IDENTIFIED BY 'x'"),
    ("CREATE USER u@host-1.example.com", "CREATE USER 'u'@'host-1.example.com'"),
    ("DROP USER IF EXISTS u, v@h", "DROP USER IF EXISTS 'u', 'v'@'h'"),
    ("RENAME USER a TO b@c", "RENAME USER 'a' TO 'b'@'c'"),
    ("CREATE ROLE r, s", "CREATE ROLE 'r', 's'"),
    (
        "GRANT SELECT (a, b), INSERT, CREATE TEMPORARY TABLES ON d.* TO u@'%' WITH GRANT OPTION",
        "GRANT SELECT (a, b), INSERT, CREATE TEMPORARY TABLES ON d.* TO 'u'@'%' WITH GRANT OPTION",
    ),
    ("GRANT ALL PRIVILEGES ON *.* TO u", "GRANT ALL ON *.* TO 'u'"),
    ("GRANT EXECUTE ON PROCEDURE d.p TO u", "GRANT EXECUTE ON PROCEDURE d.p TO 'u'"),
    ("GRANT r TO u WITH ADMIN OPTION", "GRANT 'r' TO 'u' WITH ADMIN OPTION"),
    ("GRANT PROXY ON a TO b", "GRANT PROXY ON 'a' TO 'b'"),
    ("REVOKE ALL ON d.t FROM u", "REVOKE ALL ON d.t FROM 'u'"),
    ("REVOKE ALL PRIVILEGES, GRANT OPTION FROM u", "REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'u'"),
];

#[test]
fn queries() {
    check(QUERIES);
}

#[test]
fn row_changes() {
    check(CHANGES);
}

#[test]
fn schema_changes() {
    check(SCHEMA);
}

#[test]
fn session_statements() {
    check(SESSION);
}

#[test]
fn show_statements() {
    check(SHOWS);
}

#[test]
fn users_and_grants() {
    check(USERS);
}

#[test]
fn version_comments_wrap_clauses() {
    let sql = "CREATE TABLE t (a INT) /*!50100 PARTITION BY KEY () PARTITIONS 2 */";
    assert_eq!(canonical(sql), "CREATE TABLE t (a INT) PARTITION BY KEY () PARTITIONS 2");
}
