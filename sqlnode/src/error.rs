//! MySQL's errors: the number, the SQLSTATE and the text a client sees when a statement fails.
//!
//! Role: one closed table, [`ErrorCode`], of every error this SQL node raises, and the one error type,
//! [`MySqlError`], that every part of the node returns. Clients and drivers switch on the numbers and
//! classes, and people search for the texts, so both are those of MySQL 8.0.
//!
//! A message template holds `{}` once per argument; [`MySqlError::with`] fills them in order. Too few
//! arguments leave the rest of the template empty, too many are dropped: a wrong call gives a worse text,
//! never a panic.
//!
//! What it never does: it knows nothing of the protocol's packets, of sessions or of warnings lists.

use std::borrow::Cow;
use std::fmt;

/// Declares the enum of codes and its table in one place, so that they cannot drift apart.
macro_rules! error_codes {
    ($($name:ident = $code:literal, $state:literal, $text:literal;)*) => {
        /// An error (or warning) of MySQL that this SQL node raises.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum ErrorCode {
            $(#[doc = concat!($code, " (", $state, "): ", $text)] $name = $code,)*
        }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name,)*];

            /// The number the client sees.
            pub const fn number(self) -> u16 {
                self as u16
            }

            /// The five characters of the SQLSTATE.
            pub const fn sqlstate(self) -> &'static str {
                match self {
                    $(ErrorCode::$name => $state,)*
                }
            }

            /// The message with `{}` where arguments go.
            pub const fn template(self) -> &'static str {
                match self {
                    $(ErrorCode::$name => $text,)*
                }
            }

            /// The code of a number, if this node raises it.
            pub const fn from_number(number: u16) -> Option<ErrorCode> {
                match number {
                    $($code => Some(ErrorCode::$name),)*
                    _ => None,
                }
            }
        }
    };
}

error_codes! {
    NoStorageConnection = 157, "HY000", "Could not connect to storage engine";
    CantCreateTable = 1005, "HY000", "Can't create table '{}' (errno: {} - {})";
    CantCreateDb = 1006, "HY000", "Can't create database '{}' (errno: {} - {})";
    DbCreateExists = 1007, "HY000", "Can't create database '{}'; database exists";
    DbDropExists = 1008, "HY000", "Can't drop database '{}'; database doesn't exist";
    DupKey = 1022, "23000", "Can't write; duplicate key in table '{}'";
    ErrorOnRename = 1025, "HY000", "Error on rename of '{}' to '{}' (errno: {} - {})";
    GetErrno = 1030, "HY000", "Got error {} - '{}' from storage engine";
    IllegalHa = 1031, "HY000", "Table storage engine for '{}' doesn't have this option";
    KeyNotFound = 1032, "HY000", "Can't find record in '{}'";
    OpenAsReadonly = 1036, "HY000", "Table '{}' is read only";
    OutOfMemory = 1037, "HY001", "Out of memory; restart server and try again (needed {} bytes)";
    OutOfSortMemory = 1038, "HY001", "Out of sort memory, consider increasing server sort buffer size";
    ConCount = 1040, "08004", "Too many connections";
    OutOfResources = 1041, "HY000", "Out of memory; check if mysqld or some other process uses all available memory; if not, you may have to use 'ulimit' to allow mysqld to use more memory or you can add more swap space";
    BadHost = 1042, "08S01", "Can't get hostname for your address";
    Handshake = 1043, "08S01", "Bad handshake";
    DbAccessDenied = 1044, "42000", "Access denied for user '{}'@'{}' to database '{}'";
    AccessDenied = 1045, "28000", "Access denied for user '{}'@'{}' (using password: {})";
    NoDb = 1046, "3D000", "No database selected";
    UnknownCom = 1047, "08S01", "Unknown command";
    BadNull = 1048, "23000", "Column '{}' cannot be null";
    BadDb = 1049, "42000", "Unknown database '{}'";
    TableExists = 1050, "42S01", "Table '{}' already exists";
    BadTable = 1051, "42S02", "Unknown table '{}'";
    NonUniq = 1052, "23000", "Column '{}' in {} is ambiguous";
    ServerShutdown = 1053, "08S01", "Server shutdown in progress";
    BadField = 1054, "42S22", "Unknown column '{}' in '{}'";
    WrongFieldWithGroup = 1055, "42000", "Expression #{} of {} is not in GROUP BY clause and contains nonaggregated column '{}' which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by";
    WrongGroupField = 1056, "42000", "Can't group on '{}'";
    WrongSumSelect = 1057, "42000", "Statement has sum functions and columns in same statement";
    WrongValueCount = 1058, "21S01", "Column count doesn't match value count";
    TooLongIdent = 1059, "42000", "Identifier name '{}' is too long";
    DupFieldname = 1060, "42S21", "Duplicate column name '{}'";
    DupKeyname = 1061, "42000", "Duplicate key name '{}'";
    DupEntry = 1062, "23000", "Duplicate entry '{}' for key '{}'";
    WrongFieldSpec = 1063, "42000", "Incorrect column specifier for column '{}'";
    Parse = 1064, "42000", "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '{}' at line {}";
    EmptyQuery = 1065, "42000", "Query was empty";
    NonUniqTable = 1066, "42000", "Not unique table/alias: '{}'";
    InvalidDefault = 1067, "42000", "Invalid default value for '{}'";
    MultiplePriKey = 1068, "42000", "Multiple primary key defined";
    TooManyKeys = 1069, "42000", "Too many keys specified; max {} keys allowed";
    TooManyKeyParts = 1070, "42000", "Too many key parts specified; max {} parts allowed";
    TooLongKey = 1071, "42000", "Specified key was too long; max key length is {} bytes";
    KeyColumnDoesNotExist = 1072, "42000", "Key column '{}' doesn't exist in table";
    BlobUsedAsKey = 1073, "42000", "BLOB column '{}' can't be used in key specification with the used table type";
    TooBigFieldlength = 1074, "42000", "Column length too big for column '{}' (max = {}); use BLOB or TEXT instead";
    WrongAutoKey = 1075, "42000", "Incorrect table definition; there can be only one auto column and it must be defined as a key";
    WrongSubKey = 1089, "HY000", "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys";
    CantRemoveAllFields = 1090, "42000", "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
    CantDropFieldOrKey = 1091, "42000", "Can't DROP '{}'; check that column/key exists";
    UpdateTableUsed = 1093, "HY000", "You can't specify target table '{}' for update in FROM clause";
    NoSuchThread = 1094, "HY000", "Unknown thread id: {}";
    KillDenied = 1095, "HY000", "You are not owner of thread {}";
    NoTablesUsed = 1096, "HY000", "No tables used";
    TooBigSet = 1097, "HY000", "Too many strings for column {} and SET";
    TableNotLockedForWrite = 1099, "HY000", "Table '{}' was locked with a READ lock and can't be updated";
    TableNotLocked = 1100, "HY000", "Table '{}' was not locked with LOCK TABLES";
    BlobCantHaveDefault = 1101, "42000", "BLOB, TEXT, GEOMETRY or JSON column '{}' can't have a default value";
    WrongDbName = 1102, "42000", "Incorrect database name '{}'";
    WrongTableName = 1103, "42000", "Incorrect table name '{}'";
    TooBigSelect = 1104, "42000", "The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE and use SET SQL_BIG_SELECTS=1 or SET MAX_JOIN_SIZE=# if the SELECT is okay";
    Unknown = 1105, "HY000", "Unknown error";
    UnknownProcedure = 1106, "42000", "Unknown procedure '{}'";
    WrongParamcountToProcedure = 1107, "42000", "Incorrect parameter count to procedure '{}'";
    UnknownTable = 1109, "42S02", "Unknown table '{}' in {}";
    FieldSpecifiedTwice = 1110, "42000", "Column '{}' specified twice";
    InvalidGroupFuncUse = 1111, "HY000", "Invalid use of group function";
    UnsupportedExtension = 1112, "42000", "Table '{}' uses an extension that doesn't exist in this MySQL version";
    TableMustHaveColumns = 1113, "42000", "A table must have at least 1 column";
    RecordFileFull = 1114, "HY000", "The table '{}' is full";
    UnknownCharacterSet = 1115, "42000", "Unknown character set: '{}'";
    TooManyTables = 1116, "HY000", "Too many tables; MySQL can only use {} tables in a join";
    TooManyFields = 1117, "HY000", "Too many columns";
    TooBigRowsize = 1118, "42000", "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {}. This includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs";
    StackOverrun = 1119, "HY000", "Thread stack overrun: Used: {} of a {} stack. Use 'mysqld --thread_stack=#' to specify a bigger stack if needed";
    HostNotPrivileged = 1130, "HY000", "Host '{}' is not allowed to connect to this MySQL server";
    PasswordNoMatch = 1133, "42000", "Can't find any matching row in the user table";
    CantCreateThread = 1135, "HY000", "Can't create a new thread (errno {}); if you are not out of available memory, you can consult the manual for a possible OS-dependent bug";
    WrongValueCountOnRow = 1136, "21S01", "Column count doesn't match value count at row {}";
    InvalidUseOfNull = 1138, "22004", "Invalid use of NULL value";
    Regexp = 1139, "42000", "Got error '{}' from regexp";
    MixOfGroupFuncAndFields = 1140, "42000", "In aggregated query without GROUP BY, expression #{} of {} contains nonaggregated column '{}'; this is incompatible with sql_mode=only_full_group_by";
    NonexistingGrant = 1141, "42000", "There is no such grant defined for user '{}' on host '{}'";
    TableaccessDenied = 1142, "42000", "{} command denied to user '{}'@'{}' for table '{}'";
    ColumnaccessDenied = 1143, "42000", "{} command denied to user '{}'@'{}' for column '{}' in table '{}'";
    NoSuchTable = 1146, "42S02", "Table '{}.{}' doesn't exist";
    NonexistingTableGrant = 1147, "42000", "There is no such grant defined for user '{}' on host '{}' on table '{}'";
    NotAllowedCommand = 1148, "42000", "The used command is not allowed with this MySQL version";
    Syntax = 1149, "42000", "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use";
    NetPacketTooLarge = 1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes";
    NetPacketsOutOfOrder = 1156, "08S01", "Got packets out of order";
    NetUncompress = 1157, "08S01", "Couldn't uncompress communication packet";
    NetRead = 1158, "08S01", "Got an error reading communication packets";
    NetReadInterrupted = 1159, "08S01", "Got timeout reading communication packets";
    NetErrorOnWrite = 1160, "08S01", "Got an error writing communication packets";
    NetWriteInterrupted = 1161, "08S01", "Got timeout writing communication packets";
    TooLongString = 1162, "42000", "Result string is longer than 'max_allowed_packet' bytes";
    TableCantHandleBlob = 1163, "42000", "The used table type doesn't support BLOB/TEXT columns";
    TableCantHandleAutoIncrement = 1164, "42000", "The used table type doesn't support AUTO_INCREMENT columns";
    WrongColumnName = 1166, "42000", "Incorrect column name '{}'";
    WrongKeyColumn = 1167, "42000", "The used storage engine can't index column '{}'";
    BlobKeyWithoutLength = 1170, "42000", "BLOB/TEXT column '{}' used in key specification without a key length";
    PrimaryCantHaveNull = 1171, "42000", "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead";
    TooManyRows = 1172, "42000", "Result consisted of more than one row";
    RequiresPrimaryKey = 1173, "42000", "This table type requires a primary key";
    UpdateWithoutKeyInSafeMode = 1175, "HY000", "You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column. {}";
    KeyDoesNotExist = 1176, "42000", "Key '{}' doesn't exist in table '{}'";
    CheckNoSuchTable = 1177, "42000", "Can't open table";
    CheckNotImplemented = 1178, "42000", "The storage engine for the table doesn't support {}";
    CantDoThisDuringAnTransaction = 1179, "25000", "You are not allowed to execute this command in a transaction";
    ErrorDuringCommit = 1180, "HY000", "Got error {} - '{}' during COMMIT";
    ErrorDuringRollback = 1181, "HY000", "Got error {} - '{}' during ROLLBACK";
    NewAbortingConnection = 1184, "08S01", "Aborted connection {} to db: '{}' user: '{}' host: '{}' ({})";
    LockOrActiveTransaction = 1192, "HY000", "Can't execute the given command because you have active locked tables or an active transaction";
    UnknownSystemVariable = 1193, "HY000", "Unknown system variable '{}'";
    TooManyUserConnections = 1203, "42000", "User {} already has more than 'max_user_connections' active connections";
    SetConstantsOnly = 1204, "HY000", "You may only use constant expressions with SET";
    LockWaitTimeout = 1205, "HY000", "Lock wait timeout exceeded; try restarting transaction";
    LockTableFull = 1206, "HY000", "The total number of locks exceeds the lock table size";
    WrongArguments = 1210, "HY000", "Incorrect arguments to {}";
    NoPermissionToCreateUser = 1211, "42000", "'{}'@'{}' is not allowed to create new users";
    LockDeadlock = 1213, "40001", "Deadlock found when trying to get lock; try restarting transaction";
    TableCantHandleFt = 1214, "HY000", "The used table type doesn't support FULLTEXT indexes";
    CannotAddForeign = 1215, "HY000", "Cannot add foreign key constraint";
    NoReferencedRow = 1216, "23000", "Cannot add or update a child row: a foreign key constraint fails";
    RowIsReferenced = 1217, "23000", "Cannot delete or update a parent row: a foreign key constraint fails";
    WrongUsage = 1221, "HY000", "Incorrect usage of {} and {}";
    WrongNumberOfColumnsInSelect = 1222, "21000", "The used SELECT statements have a different number of columns";
    CantUpdateWithReadlock = 1223, "HY000", "Can't execute the query because you have a conflicting read lock";
    DupArgument = 1225, "HY000", "Option '{}' used twice in statement";
    UserLimitReached = 1226, "42000", "User '{}' has exceeded the '{}' resource (current value: {})";
    SpecificAccessDenied = 1227, "42000", "Access denied; you need (at least one of) the {} privilege(s) for this operation";
    LocalVariable = 1228, "HY000", "Variable '{}' is a SESSION variable and can't be used with SET GLOBAL";
    GlobalVariable = 1229, "HY000", "Variable '{}' is a GLOBAL variable and should be set with SET GLOBAL";
    NoDefault = 1230, "42000", "Variable '{}' doesn't have a default value";
    WrongValueForVar = 1231, "42000", "Variable '{}' can't be set to the value of '{}'";
    WrongTypeForVar = 1232, "42000", "Incorrect argument type to variable '{}'";
    VarCantBeRead = 1233, "HY000", "Variable '{}' can only be set, not read";
    CantUseOptionHere = 1234, "42000", "Incorrect usage/placement of '{}'";
    NotSupportedYet = 1235, "42000", "This version of MySQL doesn't yet support '{}'";
    IncorrectGlobalLocalVar = 1238, "HY000", "Variable '{}' is a {} variable";
    WrongFkDef = 1239, "42000", "Incorrect foreign key definition for '{}': {}";
    OperandColumns = 1241, "21000", "Operand should contain {} column(s)";
    SubqueryNo1Row = 1242, "21000", "Subquery returns more than 1 row";
    UnknownStmtHandler = 1243, "HY000", "Unknown prepared statement handler ({}) given to {}";
    AutoConvert = 1246, "HY000", "Converting column '{}' from {} to {}";
    IllegalReference = 1247, "42S22", "Reference '{}' not supported ({})";
    DerivedMustHaveAlias = 1248, "42000", "Every derived table must have its own alias";
    TablenameNotAllowedHere = 1250, "42000", "Table '{}' from one of the SELECTs cannot be used in {}";
    NotSupportedAuthMode = 1251, "08004", "Client does not support authentication protocol requested by server; consider upgrading MySQL client";
    CollationCharsetMismatch = 1253, "42000", "COLLATION '{}' is not valid for CHARACTER SET '{}'";
    CutValueGroupConcat = 1260, "HY000", "Row {} was cut by GROUP_CONCAT()";
    WarnTooFewRecords = 1261, "01000", "Row {} doesn't contain data for all columns";
    WarnTooManyRecords = 1262, "01000", "Row {} was truncated; it contained more data than there were input columns";
    WarnNullToNotnull = 1263, "22004", "Column set to default value; NULL supplied to NOT NULL column '{}' at row {}";
    WarnDataOutOfRange = 1264, "22003", "Out of range value for column '{}' at row {}";
    DataTruncated = 1265, "01000", "Data truncated for column '{}' at row {}";
    WarnUsingOtherHandler = 1266, "HY000", "Using storage engine {} for table '{}'";
    CantAggregate2Collations = 1267, "HY000", "Illegal mix of collations ({},{}) and ({},{}) for operation '{}'";
    CantAggregateNCollations = 1271, "HY000", "Illegal mix of collations for operation '{}'";
    UnknownCollation = 1273, "HY000", "Unknown collation: '{}'";
    WrongNameForIndex = 1280, "42000", "Incorrect index name '{}'";
    WrongNameForCatalog = 1281, "42000", "Incorrect catalog name '{}'";
    UnknownStorageEngine = 1286, "42000", "Unknown storage engine '{}'";
    WarnDeprecatedSyntax = 1287, "HY000", "'{}' is deprecated and will be removed in a future release. Please use {} instead";
    NonUpdatableTable = 1288, "HY000", "The target table {} of the {} is not updatable";
    OptionPreventsStatement = 1290, "HY000", "The MySQL server is running with the {} option so it cannot execute this statement";
    DuplicatedValueInType = 1291, "HY000", "Column '{}' has duplicated value '{}' in {}";
    TruncatedWrongValue = 1292, "22007", "Truncated incorrect {} value: '{}'";
    TooMuchAutoTimestampCols = 1293, "HY000", "Incorrect table definition; there can be only one TIMESTAMP column with CURRENT_TIMESTAMP in DEFAULT or ON UPDATE clause";
    InvalidOnUpdate = 1294, "HY000", "Invalid ON UPDATE clause for '{}' column";
    UnsupportedPs = 1295, "HY000", "This command is not supported in the prepared statement protocol yet";
    GetErrmsg = 1296, "HY000", "Got error {} '{}' from {}";
    GetTemporaryErrmsg = 1297, "HY000", "Got temporary error {} '{}' from {}";
    UnknownTimeZone = 1298, "HY000", "Unknown or incorrect time zone: '{}'";
    InvalidCharacterString = 1300, "HY000", "Invalid {} character string: '{}'";
    WarnAllowedPacketOverflowed = 1301, "HY000", "Result of {}() was larger than max_allowed_packet ({}) - truncated";
    SpAlreadyExists = 1304, "42000", "{} {} already exists";
    SpDoesNotExist = 1305, "42000", "{} {} does not exist";
    QueryInterrupted = 1317, "70100", "Query execution was interrupted";
    SpWrongNoOfArgs = 1318, "42000", "Incorrect number of arguments for {} {}; expected {}, got {}";
    SpUndeclaredVar = 1327, "42000", "Undeclared variable: {}";
    CantUpdateUsedTableInSf = 1442, "HY000", "Can't update table '{}' in stored function/trigger because it is already used by statement which invoked this stored function/trigger.";
    WrongObject = 1347, "HY000", "'{}.{}' is not {}";
    NonupdateableColumn = 1348, "HY000", "Column '{}' is not updatable";
    NoDefaultForField = 1364, "HY000", "Field '{}' doesn't have a default value";
    DivisionByZero = 1365, "22012", "Division by 0";
    TruncatedWrongValueForField = 1366, "HY000", "Incorrect {} value: '{}' for column '{}' at row {}";
    IllegalValueForType = 1367, "22007", "Illegal {} '{}' value found during parsing";
    ProcaccessDenied = 1370, "42000", "{} command denied to user '{}'@'{}' for routine '{}'";
    PsManyParam = 1390, "HY000", "Prepared statement contains too many placeholders";
    CannotUser = 1396, "HY000", "Operation {} failed for {}";
    XaerNota = 1397, "XAE04", "XAER_NOTA: Unknown XID";
    XaerRmfail = 1399, "XAE07", "XAER_RMFAIL: The command cannot be executed when global transaction is in the  {} state";
    DataTooLong = 1406, "22001", "Data too long for column '{}' at row {}";
    WrongValueForType = 1411, "HY000", "Incorrect {} value: '{}' for function {}";
    TableDefChanged = 1412, "HY000", "Table definition has changed, please retry transaction";
    SpNotVarArg = 1414, "42000", "OUT or INOUT argument {} for routine {} is not a variable or NEW pseudo-variable in BEFORE trigger";
    TooBigScale = 1425, "42000", "Too big scale {} specified for column '{}'. Maximum is {}.";
    TooBigPrecision = 1426, "42000", "Too-big precision {} specified for '{}'. Maximum is {}.";
    MBiggerThanD = 1427, "42000", "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{}').";
    TooBigDisplaywidth = 1439, "42000", "Display width out of range for column '{}' (max = {})";
    DatetimeFunctionOverflow = 1441, "22008", "Datetime function: {} field overflow";
    RowIsReferenced2 = 1451, "23000", "Cannot delete or update a parent row: a foreign key constraint fails ({})";
    NoReferencedRow2 = 1452, "23000", "Cannot add or update a child row: a foreign key constraint fails ({})";
    SpBadVarShadow = 1453, "42000", "Variable '{}' must be quoted with `...`, or renamed";
    MaxPreparedStmtCountReached = 1461, "42000", "Can't create more than max_prepared_stmt_count statements (current value: {})";
    NonGroupingFieldUsed = 1463, "42000", "Non-grouping field '{}' is used in {} clause";
    IllegalHaCreateOption = 1478, "HY000", "Table storage engine '{}' does not support the create option '{}'";
    PartitionRequiresValues = 1479, "HY000", "Syntax error: {} PARTITIONING requires definition of VALUES {} for each partition";
    PartitionsMustBeDefined = 1492, "HY000", "For {} partitions each partition must be defined";
    FieldNotFoundPart = 1488, "HY000", "Field in list of fields for partition function not found in table";
    InconsistentPartitionInfo = 1497, "HY000", "The mix of handlers in the partitions is not allowed in this version of MySQL";
    TooManyPartitions = 1499, "HY000", "Too many partitions (including subpartitions) were defined";
    UniqueKeyNeedAllFieldsInPf = 1503, "HY000", "A {} must include all columns in the table's partitioning function";
    NoParts = 1504, "HY000", "Number of {} = 0 is not an allowed value";
    PartitionMgmtOnNonpartitioned = 1505, "HY000", "Partition management on a not partitioned table is not possible";
    ForeignKeyOnPartitioned = 1506, "HY000", "Foreign keys are not yet supported in conjunction with partitioning";
    DropPartitionNonExistent = 1507, "HY000", "Error in list of partitions to {}";
    OnlyOnRangeListPartition = 1512, "HY000", "{} PARTITION can only be used on RANGE/LIST partitions";
    SameNamePartition = 1517, "HY000", "Duplicate partition name {}";
    WrongValue = 1525, "HY000", "Incorrect {} value: '{}'";
    NoPartitionForGivenValue = 1526, "HY000", "Table has no partition for value {}";
    CreateFilegroupFailed = 1528, "HY000", "Failed to create {}";
    DropFilegroupFailed = 1529, "HY000", "Failed to drop {}";
    CantChangeTxCharacteristics = 1568, "25001", "Transaction characteristics can't be changed while a transaction is in progress";
    WrongParamcountToNativeFct = 1582, "42000", "Incorrect parameter count in the call to native function '{}'";
    WrongParametersToNativeFct = 1583, "42000", "Incorrect parameters in the call to native function '{}'";
    WrongParametersToStoredFct = 1584, "42000", "Incorrect parameters in the call to stored function {}";
    DupEntryAutoincrementCase = 1569, "HY000", "ALTER TABLE causes auto_increment resequencing, resulting in duplicate entry '{}' for key '{}'";
    NeedReprepare = 1615, "HY000", "Prepared statement needs to be re-prepared";
    VariableIsReadonly = 1621, "HY000", "{} variable '{}' is read-only. Use SET {} to assign the value";
    FunctionDoesNotExist = 1630, "42000", "FUNCTION {} does not exist. Check the 'Function Name Parsing and Resolution' section in the Reference Manual";
    WarnDeprecatedNoReplacement = 1681, "HY000", "'{}' is deprecated and will be removed in a future release.";
    DataOutOfRange = 1690, "22003", "{} value is out of range in '{}'";
    NonIntegerLimit = 1691, "HY000", "A variable of a non-integer based type in LIMIT clause";
    AccessDeniedNoPassword = 1698, "28000", "Access denied for user '{}'@'{}'";
    PartitionClauseOnNonpartitioned = 1747, "HY000", "PARTITION () clause on non partitioned table";
    UnknownPartition = 1735, "HY000", "Unknown partition '{}' in table '{}'";
    CantExecuteInReadOnlyTransaction = 1792, "25006", "Cannot execute statement in a READ ONLY transaction.";
    InternalError = 1815, "HY000", "Internal error: {}";
    NotValidPassword = 1819, "HY000", "Your password does not satisfy the current policy requirements";
    MustChangePassword = 1820, "HY000", "You must reset your password using ALTER USER statement before executing this statement.";
    AlterOperationNotSupported = 1845, "0A000", "{} is not supported for this operation. Try {}.";
    AlterOperationNotSupportedReason = 1846, "0A000", "{} is not supported. Reason: {}. Try {}.";
    DupUnknownInIndex = 1859, "23000", "Duplicate entry for key '{}'";
    QueryTimeout = 3024, "HY000", "Query execution was interrupted, maximum statement execution time exceeded";
    FieldInOrderNotSelect = 3065, "HY000", "Expression #{} of ORDER BY clause is not in SELECT list, references column '{}' which is not in SELECT list; this is incompatible with {}";
    NonDefaultValueForGeneratedColumn = 3105, "HY000", "The value specified for generated column '{}' in table '{}' is not allowed.";
    AccountHasBeenLocked = 3118, "HY000", "Access denied for user '{}'@'{}'. Account is locked.";
    InvalidJsonText = 3140, "22032", "Invalid JSON text: \"{}\" at position {} in value for column '{}'.";
    InvalidJsonTextInParam = 3141, "22032", "Invalid JSON text in argument {} to function {}: \"{}\" at position {}.";
    InvalidJsonPath = 3143, "42000", "Invalid JSON path expression. The error is around character position {}.";
    InvalidJsonCharset = 3144, "22032", "Cannot create a JSON value from a string with CHARACTER SET '{}'.";
    SecureTransportRequired = 3159, "HY000", "Connections using insecure transport are prohibited while --require_secure_transport=ON.";
    LockNowait = 3572, "HY000", "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.";
    CteMaxRecursionDepth = 3636, "HY000", "Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger value.";
    RegexpIllegalArgument = 3685, "HY000", "Illegal argument to a regular expression.";
    RegexpIndexOutofbounds = 3686, "HY000", "Index out of bounds in regular expression search.";
    RegexpInternal = 3687, "HY000", "Internal error in the regular expression library.";
    RegexpRuleSyntax = 3688, "HY000", "Syntax error in regular expression on line {}, character {}.";
    RegexpBadEscapeSequence = 3689, "HY000", "Unrecognized escape sequence in regular expression.";
    RegexpUnimplemented = 3690, "HY000", "The regular expression contains a feature that is not implemented in this library version.";
    RegexpMismatchedParen = 3691, "HY000", "Mismatched parenthesis in regular expression.";
    RegexpBadInterval = 3692, "HY000", "Incorrect description of a {min,max} interval.";
    RegexpMaxLtMin = 3693, "HY000", "The maximum is less than the minimum in a {min,max} interval.";
    RegexpInvalidBackRef = 3694, "HY000", "Invalid back-reference in regular expression.";
    RegexpLookBehindLimit = 3695, "HY000", "The look-behind assertion exceeds the limit in regular expression.";
    RegexpMissingCloseBracket = 3696, "HY000", "The regular expression contains an unclosed bracket expression.";
    RegexpInvalidRange = 3697, "HY000", "The regular expression contains an [x-y] character range where x comes after y.";
    RegexpStackOverflow = 3698, "HY000", "Overflow in the regular expression backtrack stack.";
    RegexpTimeOut = 3699, "HY000", "Timeout exceeded in regular expression match.";
    RegexpPatternTooBig = 3700, "HY000", "The regular expression pattern exceeds limits on size or complexity.";
    FkCannotDropParent = 3730, "HY000", "Cannot drop table '{}' referenced by a foreign key constraint '{}' on table '{}'.";
    CheckConstraintViolated = 3819, "HY000", "Check constraint '{}' is violated.";
    CannotConvertString = 3854, "HY000", "Cannot convert string '{}' from {} to {}";
    RegexpInvalidCaptureGroupName = 3887, "HY000", "A capture group has an invalid name.";
    CharacterSetMismatch = 3995, "HY000", "Character set '{}' cannot be used in conjunction with '{}' in call to {}.";
    ClientInteractionTimeout = 4031, "HY000", "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for configuring this behavior.";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}

/// A failed statement as the client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MySqlError {
    /// The number, for example 1062.
    pub code: u16,
    /// The five-character class, for example `23000`.
    pub sqlstate: &'static str,
    /// The text in MySQL's words.
    pub message: Cow<'static, str>,
}

/// The longest message sent to a client, as in MySQL (MYSQL_ERRMSG_SIZE).
pub const MESSAGE_BYTES_MAX: usize = 512;

impl MySqlError {
    /// The error of a code whose message takes no argument.
    pub fn new(code: ErrorCode) -> Self {
        Self::with(code, &[])
    }

    /// The error of a code with its arguments filled in, in order.
    pub fn with(code: ErrorCode, args: &[&dyn fmt::Display]) -> Self {
        Self::text(code, fill(code.template(), args))
    }

    /// The error of a code with a message of its own, for texts that MySQL words differently by place.
    pub fn text(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        let mut message = message.into();
        if message.len() > MESSAGE_BYTES_MAX {
            let mut end = MESSAGE_BYTES_MAX;
            while !message.is_char_boundary(end) {
                end -= 1;
            }
            message.to_mut().truncate(end);
        }
        Self { code: code.number(), sqlstate: code.sqlstate(), message }
    }

    /// Whether the error carries this code.
    pub fn is(&self, code: ErrorCode) -> bool {
        self.code == code.number()
    }

    /// 1105: something went wrong inside this node; the text says what.
    pub fn internal(what: impl fmt::Display) -> Self {
        Self::with(ErrorCode::InternalError, &[&what])
    }

    /// 1064: the parser stopped at `near` on `line`.
    pub fn parse(near: &str, line: u32) -> Self {
        // MySQL quotes at most 80 characters of the statement.
        let near: String = near.chars().take(80).collect();
        Self::with(ErrorCode::Parse, &[&near, &line])
    }

    /// 1054: no such column in this part of the statement (`field list`, `where clause`, ...).
    pub fn bad_field(column: &str, clause: &str) -> Self {
        Self::with(ErrorCode::BadField, &[&column, &clause])
    }

    /// 1146: no such table.
    pub fn no_such_table(schema: &str, table: &str) -> Self {
        Self::with(ErrorCode::NoSuchTable, &[&schema, &table])
    }

    /// 1048: NULL for a column that is NOT NULL.
    pub fn bad_null(column: &str) -> Self {
        Self::with(ErrorCode::BadNull, &[&column])
    }

    /// 1062: the key is taken. `key` reads `table.PRIMARY` or `table.index`.
    pub fn dup_entry(entry: &str, key: &str) -> Self {
        Self::with(ErrorCode::DupEntry, &[&entry, &key])
    }

    /// 1235: a valid statement this node does not execute yet.
    pub fn not_supported(what: &str) -> Self {
        Self::with(ErrorCode::NotSupportedYet, &[&what])
    }

    /// 1690: the result of `expression` does not fit its type (`BIGINT`, `BIGINT UNSIGNED`, `DOUBLE`,
    /// `DECIMAL`).
    pub fn out_of_range(type_name: &str, expression: &str) -> Self {
        Self::with(ErrorCode::DataOutOfRange, &[&type_name, &expression])
    }

    /// 1292: text that is no value of the type was cut or taken as zero.
    pub fn truncated_wrong_value(type_name: &str, value: &str) -> Self {
        let value: String = value.chars().take(128).collect();
        Self::with(ErrorCode::TruncatedWrongValue, &[&type_name, &value])
    }

    /// 1292 in the wording used for a column: `Incorrect datetime value: 'x' for column 'c' at row 1`.
    pub fn incorrect_for_column(type_name: &str, value: &str, column: &str, row: u64) -> Self {
        let value: String = value.chars().take(128).collect();
        Self::text(
            ErrorCode::TruncatedWrongValue,
            fill(ErrorCode::TruncatedWrongValueForField.template(), &[&type_name, &value, &column, &row]),
        )
    }

    /// The cluster's own error, mapped as NDB's handler maps it: some codes have a MySQL code of their own,
    /// the others become 1297 (temporary: retry) or 1296. `table` is `schema.table`, used where a text names
    /// it.
    pub fn from_ndb(ndb_code: u32, ndb_message: &str, temporary: bool, table: &str) -> Self {
        match ndb_code {
            266 | 274 | 296 | 297 | 237 | 635 => Self::new(ErrorCode::LockWaitTimeout),
            4903 => Self::new(ErrorCode::LockDeadlock),
            626 => Self::with(ErrorCode::KeyNotFound, &[&table]),
            630 | 893 => Self::with(ErrorCode::DupKey, &[&table]),
            255 => Self::with(ErrorCode::NoReferencedRow2, &[&table]),
            256 => Self::with(ErrorCode::RowIsReferenced2, &[&table]),
            623..=625 | 633 | 826 | 827 | 889 | 902 | 1601 | 1603 => {
                Self::with(ErrorCode::RecordFileFull, &[&table])
            }
            241 | 284 => Self::new(ErrorCode::TableDefChanged),
            709 | 723 | 283 | 1226 => {
                let (schema, name) = table.split_once('.').unwrap_or(("", table));
                Self::no_such_table(schema, name)
            }
            721 => Self::with(ErrorCode::TableExists, &[&table]),
            4009 | 281 => Self::new(ErrorCode::NoStorageConnection),
            _ if temporary => {
                Self::with(ErrorCode::GetTemporaryErrmsg, &[&ndb_code, &ndb_message, &"NDBCLUSTER"])
            }
            _ => Self::with(ErrorCode::GetErrmsg, &[&ndb_code, &ndb_message, &"NDBCLUSTER"]),
        }
    }
}

impl From<ErrorCode> for MySqlError {
    fn from(code: ErrorCode) -> Self {
        Self::new(code)
    }
}

impl fmt::Display for MySqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR {} ({}): {}", self.code, self.sqlstate, self.message)
    }
}

impl std::error::Error for MySqlError {}

/// Puts the arguments where the template has `{}`.
fn fill(template: &'static str, args: &[&dyn fmt::Display]) -> Cow<'static, str> {
    use fmt::Write as _;
    if !template.contains("{}") {
        return Cow::Borrowed(template);
    }
    let mut out = String::with_capacity(template.len() + 32);
    let mut args = args.iter();
    for (index, piece) in template.split("{}").enumerate() {
        if index > 0
            && let Some(arg) = args.next()
        {
            // Writing to a String cannot fail; an argument's own Display that fails leaves its place empty.
            let _ = write!(out, "{arg}");
        }
        out.push_str(piece);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_filled_in_order() {
        let e = MySqlError::dup_entry("7", "t.PRIMARY");
        assert_eq!(e.to_string(), "ERROR 1062 (23000): Duplicate entry '7' for key 't.PRIMARY'");
        let e = MySqlError::incorrect_for_column("datetime", "x", "d", 3);
        assert_eq!(
            e.to_string(),
            "ERROR 1292 (22007): Incorrect datetime value: 'x' for column 'd' at row 3"
        );
    }

    #[test]
    fn wrong_argument_counts_never_panic() {
        assert_eq!(MySqlError::with(ErrorCode::BadField, &[&"a"]).message, "Unknown column 'a' in ''");
        assert_eq!(MySqlError::with(ErrorCode::NoDb, &[&"a"]).message, "No database selected");
    }

    #[test]
    fn table_is_consistent() {
        for &code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_number(code.number()), Some(code));
            assert_eq!(code.sqlstate().len(), 5, "{code}");
            assert!(code.sqlstate().bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()), "{code}");
        }
    }

    #[test]
    fn long_messages_are_cut_on_a_character() {
        let e = MySqlError::with(ErrorCode::BadDb, &[&"é".repeat(400)]);
        assert!(e.message.len() <= MESSAGE_BYTES_MAX && e.message.len() > MESSAGE_BYTES_MAX - 4);
    }

    #[test]
    fn cluster_errors_keep_their_class() {
        assert_eq!(MySqlError::from_ndb(266, "x", true, "a.t").code, 1205);
        assert_eq!(MySqlError::from_ndb(4903, "x", true, "a.t").code, 1213);
        assert_eq!(MySqlError::from_ndb(827, "x", false, "a.t").message, "The table 'a.t' is full");
        assert_eq!(
            MySqlError::from_ndb(410, "REDO log files overloaded", true, "a.t").to_string(),
            "ERROR 1297 (HY000): Got temporary error 410 'REDO log files overloaded' from NDBCLUSTER"
        );
    }
}
