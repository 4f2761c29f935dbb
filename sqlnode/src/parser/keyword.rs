//! Keywords: the words that the grammar knows, and which of them may not be a name.
//!
//! A *reserved* word (SELECT, RANK, GROUPS) is a name only inside quotes or after a dot. The other words
//! here (COUNT, STATUS, DATE) mean something in one place of the grammar and are ordinary names everywhere
//! else. The set of reserved words is that of MySQL 8.0. Non-reserved words are listed only if some rule
//! asks for them.
//!
//! Lookup: a table built at compile time, probed with a hash of the word's length and five of its letters;
//! one compare confirms. A word that is not a keyword usually costs one empty probe.

macro_rules! keywords {
    (reserved { $($r:ident)* } words { $($w:ident)* }) => {
        /// A keyword. `NONE` stands for every other word.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, missing_docs)] // The names are the words.
        #[repr(u16)]
        pub(super) enum Kw { NONE, $($r,)* $($w,)* }

        /// All keywords in the order of the enum.
        const ALL: &[Kw] = &[Kw::NONE, $(Kw::$r,)* $(Kw::$w,)*];
        /// Their spelling.
        const NAMES: &[&str] = &["", $(stringify!($r),)* $(stringify!($w),)*];
        /// How many are reserved; they come first.
        const RESERVED: usize = 1 + [$(Kw::$r,)*].len();
    };
}

keywords! {
    reserved {
        ACCESSIBLE ADD ALL ALTER ANALYZE AND AS ASC ASENSITIVE BEFORE BETWEEN BIGINT BINARY BLOB BOTH BY CALL CASCADE
        CASE CHANGE CHAR CHARACTER CHECK COLLATE COLUMN CONDITION CONSTRAINT CONTINUE CONVERT CREATE CROSS CUBE
        CUME_DIST CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURSOR DATABASE DATABASES DAY_HOUR
        DAY_MICROSECOND DAY_MINUTE DAY_SECOND DEC DECIMAL DECLARE DEFAULT DELAYED DELETE DENSE_RANK DESC DESCRIBE
        DETERMINISTIC DISTINCT DISTINCTROW DIV DOUBLE DROP DUAL EACH ELSE ELSEIF EMPTY ENCLOSED ESCAPED EXCEPT EXISTS
        EXIT EXPLAIN FALSE FETCH FIRST_VALUE FLOAT FLOAT4 FLOAT8 FOR FORCE FOREIGN FROM FULLTEXT FUNCTION GENERATED
        GET GRANT GROUP GROUPING GROUPS HAVING HIGH_PRIORITY HOUR_MICROSECOND HOUR_MINUTE HOUR_SECOND IF IGNORE IN
        INDEX INFILE INNER INOUT INSENSITIVE INSERT INT INT1 INT2 INT3 INT4 INT8 INTEGER INTERSECT INTERVAL INTO
        IO_AFTER_GTIDS IO_BEFORE_GTIDS IS ITERATE JOIN JSON_TABLE KEY KEYS KILL LAG LAST_VALUE LATERAL LEAD LEADING
        LEAVE LEFT LIKE LIMIT LINEAR LINES LOAD LOCALTIME LOCALTIMESTAMP LOCK LONG LONGBLOB LONGTEXT LOOP
        LOW_PRIORITY MASTER_BIND MASTER_SSL_VERIFY_SERVER_CERT MATCH MAXVALUE MEDIUMBLOB MEDIUMINT MEDIUMTEXT
        MIDDLEINT MINUTE_MICROSECOND MINUTE_SECOND MOD MODIFIES NATURAL NOT NO_WRITE_TO_BINLOG NTH_VALUE NTILE NULL
        NUMERIC OF ON OPTIMIZE OPTIMIZER_COSTS OPTION OPTIONALLY OR ORDER OUT OUTER OUTFILE OVER PARTITION
        PERCENT_RANK PRECISION PRIMARY PROCEDURE PURGE RANGE RANK READ READS READ_WRITE REAL RECURSIVE REFERENCES
        REGEXP RELEASE RENAME REPEAT REPLACE REQUIRE RESIGNAL RESTRICT RETURN REVOKE RIGHT RLIKE ROW ROWS ROW_NUMBER
        SCHEMA SCHEMAS SECOND_MICROSECOND SELECT SENSITIVE SEPARATOR SET SHOW SIGNAL SMALLINT SPATIAL SPECIFIC SQL
        SQLEXCEPTION SQLSTATE SQLWARNING SQL_BIG_RESULT SQL_CALC_FOUND_ROWS SQL_SMALL_RESULT SSL STARTING STORED
        STRAIGHT_JOIN SYSTEM TABLE TERMINATED THEN TINYBLOB TINYINT TINYTEXT TO TRAILING TRIGGER TRUE UNDO UNION
        UNIQUE UNLOCK UNSIGNED UPDATE USAGE USE USING UTC_DATE UTC_TIME UTC_TIMESTAMP VALUES VARBINARY VARCHAR
        VARCHARACTER VARYING VIRTUAL WHEN WHERE WHILE WINDOW WITH WRITE XOR YEAR_MONTH ZEROFILL
    }
    words {
        ACCOUNT ACTION ADDDATE ADMIN AFTER AGAINST AGGREGATE ALGORITHM ALWAYS ANY ANY_VALUE ARRAY ASCII ATTRIBUTE
        AUTO_INCREMENT AVG AVG_ROW_LENGTH BEGIN BINLOG BIT BIT_AND BIT_OR BIT_XOR BOOL BOOLEAN BTREE BYTE CACHE
        CASCADED CAST CHAIN CHANGED CHARSET CHECKSUM CLONE COALESCE CODE COLLATION COLUMNS COLUMN_FORMAT COMMENT
        COMMIT COMMITTED COMPACT COMPONENT COMPRESSED COMPRESSION CONNECTION CONSISTENT COUNT CURDATE CURRENT CURTIME
        DATA DATE DATETIME DATE_ADD DATE_SUB DAY DEALLOCATE DEFINER DIRECTORY DISABLE DISCARD DISK DO DUMPFILE
        DUPLICATE DYNAMIC ENABLE ENCRYPTION END ENFORCED ENGINE ENGINES ENGINE_ATTRIBUTE ENUM ERRORS ESCAPE EVENT
        EVENTS EXCHANGE EXECUTE EXPANSION EXPORT EXTENDED EXTRACT FAST FIELDS FILTER FIRST FIXED FLUSH FORMAT FULL
        GEOMCOLLECTION GEOMETRY GEOMETRYCOLLECTION GET_FORMAT GLOBAL GRANTS GROUP_CONCAT HANDLER HASH HELP HIGH HOST
        HOSTS HOUR IDENTIFIED IMPORT INDEXES INSERT_METHOD INSTALL INSTANCE INVISIBLE INVOKER ISOLATION JSON
        JSON_ARRAYAGG JSON_OBJECTAGG KEY_BLOCK_SIZE LANGUAGE LESS LEVEL LINESTRING LIST LOCAL LOCKED LOGFILE LOGS
        MASTER MAX MAX_ROWS MEDIUM MEMBER MEMORY MERGE MICROSECOND MID MIN MINUTE MIN_ROWS MODE MODIFY MONTH
        MULTILINESTRING MULTIPOINT MULTIPOLYGON MUTEX NAMES NATIONAL NCHAR NEW NEXT NO NODEGROUP NOW NOWAIT
        NVARCHAR OFF OFFSET OJ OLD ONLY OPEN OPTIONS PARSER PARTIAL PARTITIONING PARTITIONS PASSWORD PERSIST
        PERSIST_ONLY PLUGIN PLUGINS POINT POLYGON POSITION PREPARE PRIVILEGES PROCESSLIST PROFILE PROFILES PROXY
        QUARTER QUERY QUICK REBUILD RECOVER RELAYLOG REMOVE REORGANIZE REPAIR REPEATABLE REPLICA REPLICAS REPLICATION
        RESET RESOURCE RESTART RETAIN RETURNING REUSE ROLE ROLLBACK ROLLUP ROUTINE ROW_FORMAT RTREE SAVEPOINT SECOND
        SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE SECURITY SERIAL SERIALIZABLE SERVER SESSION SHARE SHUTDOWN SIGNED
        SIMPLE SKIP SLAVE SNAPSHOT SOME SOUNDS SQL_BUFFER_RESULT SQL_CACHE SQL_NO_CACHE SQL_TSI_DAY SQL_TSI_HOUR
        SQL_TSI_MINUTE SQL_TSI_MONTH SQL_TSI_QUARTER SQL_TSI_SECOND SQL_TSI_WEEK SQL_TSI_YEAR SRID START
        STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES STATUS STD STDDEV STDDEV_POP STDDEV_SAMP STOP STORAGE
        SUBDATE SUBPARTITION SUBPARTITIONS SUBSTR SUBSTRING SUM SYSDATE TABLES TABLESPACE TEMPORARY TEMPTABLE TEXT
        THAN TIME TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TRANSACTION TRIGGERS TRIM TRUNCATE TYPE UNCOMMITTED UNDEFINED
        UNICODE UNINSTALL UNKNOWN UPGRADE USER USE_FRM VALIDATION VALUE VARIABLES VARIANCE VAR_POP VAR_SAMP VIEW
        VISIBLE WAIT WARNINGS WEEK WEIGHT_STRING WITHOUT WORK X509 XA YEAR
    }
}

/// Longest keyword.
const LEN_MAX: usize = 29;
/// Slots of the hash table; a power of two, at least twice the words.
const SLOTS: usize = 2048;
const _: () = assert!(ALL.len() * 2 < SLOTS && ALL.len() == NAMES.len());

static TABLE: [u16; SLOTS] = build();

const fn hash(word: &[u8]) -> usize {
    let n = word.len();
    // Setting bit 5 folds the case of letters and keeps `_` and digits apart from them.
    let h = (word[0] | 0x20) as u32;
    let h = h.wrapping_mul(31).wrapping_add((word[n / 3] | 0x20) as u32);
    let h = h.wrapping_mul(31).wrapping_add((word[n / 2] | 0x20) as u32);
    let h = h.wrapping_mul(31).wrapping_add((word[n - 2] | 0x20) as u32);
    let h = h.wrapping_mul(31).wrapping_add((word[n - 1] | 0x20) as u32);
    let h = h.wrapping_mul(31).wrapping_add(n as u32).wrapping_mul(0x9e37_79b1);
    (h >> 21) as usize
}

const fn build() -> [u16; SLOTS] {
    let mut table = [0u16; SLOTS];
    let mut i = 1;
    while i < NAMES.len() {
        assert!(NAMES[i].len() <= LEN_MAX && NAMES[i].len() >= 2);
        let mut slot = hash(NAMES[i].as_bytes());
        while table[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = i as u16;
        i += 1;
    }
    table
}

impl Kw {
    /// The keyword that this word is, `NONE` for other words.
    pub(super) fn lookup(word: &[u8]) -> Kw {
        if word.len() < 2 || word.len() > LEN_MAX {
            return Kw::NONE;
        }
        let mut slot = hash(word);
        loop {
            let index = usize::from(TABLE[slot]);
            if index == 0 {
                return Kw::NONE;
            }
            if NAMES[index].as_bytes().eq_ignore_ascii_case(word) {
                return ALL[index];
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// Whether the word may not be a name without quotes.
    pub(super) fn is_reserved(self) -> bool {
        let index = self as usize;
        index != 0 && index < RESERVED
    }

    /// The word in capitals.
    pub(super) fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// Whether `name` must be quoted to be a name: used when text is generated.
pub fn is_reserved(name: &str) -> bool {
    Kw::lookup(name.as_bytes()).is_reserved()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found_in_any_case() {
        for (kw, name) in ALL.iter().zip(NAMES).skip(1) {
            assert_eq!(Kw::lookup(name.as_bytes()), *kw);
            assert_eq!(Kw::lookup(name.to_ascii_lowercase().as_bytes()), *kw);
            assert_eq!(kw.name(), *name);
        }
    }

    #[test]
    fn other_words_are_not() {
        for word in ["", "a", "id", "sbtest1", "SELECTED", "FRO", "_", "MASTER_SSL_VERIFY_SERVER_CERTIFICATE"]
        {
            assert_eq!(Kw::lookup(word.as_bytes()), Kw::NONE, "{word}");
        }
    }

    #[test]
    fn reserved_and_not() {
        for word in ["select", "rank", "groups", "key", "LATERAL", "ZEROFILL", "system", "of", "except"] {
            assert!(is_reserved(word), "{word}");
        }
        for word in ["count", "status", "date", "value", "user", "offset", "begin", "names", "type", "x"] {
            assert!(!is_reserved(word), "{word}");
        }
    }
}
