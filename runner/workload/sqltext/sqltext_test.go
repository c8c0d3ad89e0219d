package sqltext

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	noBackslash, ansi := Mode{NoBackslashEscapes: true}, Mode{ANSIQuotes: true}
	for _, tt := range []struct {
		name string
		mode Mode
		text string
		want []string
	}{
		{"empty", Mode{}, "", nil},
		{"blank", Mode{}, " \n\t;;  ; \n", nil},
		{"one without a delimiter", Mode{}, "SELECT 1", []string{"SELECT 1"}},
		{"two", Mode{}, "SELECT 1;\n SELECT 2 ;\n", []string{"SELECT 1", "SELECT 2"}},
		{"single quotes", Mode{}, "SELECT ';';SELECT 2", []string{"SELECT ';'", "SELECT 2"}},
		{"double quotes", Mode{}, `SELECT ";";SELECT 2`, []string{`SELECT ";"`, "SELECT 2"}},
		{"back quotes", Mode{}, "SELECT `a;b`;SELECT 2", []string{"SELECT `a;b`", "SELECT 2"}},
		{"doubled quotes", Mode{}, "SELECT 'it''s; so';SELECT \"a\"\";\";SELECT `a``;`", []string{"SELECT 'it''s; so'", "SELECT \"a\"\";\"", "SELECT `a``;`"}},
		{"one kind of quotes in another", Mode{}, `SELECT '";', "';";SELECT 2`, []string{`SELECT '";', "';"`, "SELECT 2"}},
		{"escaped quote", Mode{}, `SELECT 'a\';b';SELECT 2`, []string{`SELECT 'a\';b'`, "SELECT 2"}},
		{"escaped backslash", Mode{}, `SELECT 'a\\';SELECT 2`, []string{`SELECT 'a\\'`, "SELECT 2"}},
		{"no escape in a name", Mode{}, "SELECT `a\\`;SELECT 2", []string{"SELECT `a\\`", "SELECT 2"}},
		{"no backslash escapes", noBackslash, `SELECT 'a\';SELECT 'b'`, []string{`SELECT 'a\'`, `SELECT 'b'`}},
		{"no backslash escapes in double quotes", noBackslash, `SELECT "a\";SELECT 'b'`, []string{`SELECT "a\"`, `SELECT 'b'`}},
		{"ANSI quotes are names", ansi, `SELECT "a\";SELECT '\';'`, []string{`SELECT "a\"`, `SELECT '\';'`}},
		{"dash comment", Mode{}, "SELECT 1 -- one; still\n+ 1;SELECT 2", []string{"SELECT 1 -- one; still\n+ 1", "SELECT 2"}},
		{"dash comment ends the text", Mode{}, "SELECT 1; --", []string{"SELECT 1"}},
		{"dashes that subtract", Mode{}, "SELECT 1--1;SELECT 2", []string{"SELECT 1--1", "SELECT 2"}},
		{"hash comment", Mode{}, "# a; b\nSELECT 1 # c; d\n;SELECT 2", []string{"SELECT 1", "SELECT 2"}},
		{"comment", Mode{}, "/* a; ' */SELECT /* b; */ 1;SELECT 2", []string{"SELECT /* b; */ 1", "SELECT 2"}},
		{"only comments", Mode{}, "/* a */; -- b\n;# c", nil},
		{"comment signs in a string", Mode{}, "SELECT '/*', '-- ', '#';SELECT 2", []string{"SELECT '/*', '-- ', '#'", "SELECT 2"}},
		{"short comment", Mode{}, "/**/SELECT 1", []string{"SELECT 1"}},
		{"executed comment", Mode{}, "/*!50003 CREATE TRIGGER t BEGIN a; b; END */;SELECT 2", []string{"/*!50003 CREATE TRIGGER t BEGIN a; b; END */", "SELECT 2"}},
		{"executed comment of MariaDB", Mode{}, "/*M!100500 SET a=1; */;SELECT 2", []string{"/*M!100500 SET a=1; */", "SELECT 2"}},
		{"end sign in a string of an executed comment", Mode{}, "/*! SELECT '*/;' */;SELECT 2", []string{"/*! SELECT '*/;' */", "SELECT 2"}},
		{"comment in an executed comment", Mode{}, "/*! SELECT /* ; */ 1 */;SELECT 2", []string{"/*! SELECT /* ; */ 1 */", "SELECT 2"}},
		{"hint", Mode{}, "SELECT /*+ SET_VAR(a=1) ; */ 1;SELECT 2", []string{"SELECT /*+ SET_VAR(a=1) ; */ 1", "SELECT 2"}},
		{"multiplication and division", Mode{}, "SELECT 2*/2;SELECT 3", []string{"SELECT 2*/2", "SELECT 3"}},
		{"delimiter", Mode{}, "DELIMITER //\nCREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END//\ndelimiter ;\nCALL p();",
			[]string{"CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END", "CALL p()"}},
		{"delimiter next to a word", Mode{}, "DELIMITER $$\nBEGIN; END$$SELECT 1$$", []string{"BEGIN; END", "SELECT 1"}},
		{"delimiter that is a word", Mode{}, "DELIMITER go\nSELECT category, gone, ago\ngo\nSELECT 2 GO\ngo", []string{"SELECT category, gone, ago", "SELECT 2 GO"}},
		{"delimiter with more on its line", Mode{}, "DELIMITER | and more\nSELECT 1; SELECT 2|SELECT 3", []string{"SELECT 1; SELECT 2", "SELECT 3"}},
		{"delimiter in a string", Mode{}, "DELIMITER //\nSELECT '//'//SELECT 2", []string{"SELECT '//'", "SELECT 2"}},
		{"delimiter after a statement on its line", Mode{}, "SELECT 1; DELIMITER |\nSELECT 2|", []string{"SELECT 1", "SELECT 2"}},
		{"the word delimiter within a statement", Mode{}, "SELECT delimiter FROM t;SELECT delimiters", []string{"SELECT delimiter FROM t", "SELECT delimiters"}},
		{"go and G", Mode{}, "SELECT 1\\G\nSELECT '\\G'\\g SELECT 3", []string{"SELECT 1", "SELECT '\\G'", "SELECT 3"}},
		{"line ends of Windows", Mode{}, "SELECT 1;\r\n-- a\r\nDELIMITER //\r\nSELECT 2; //\r\n", []string{"SELECT 1", "SELECT 2;"}},
		{"other alphabets", Mode{}, "SELECT 'ä;ö', `日;本`;SELECT 2", []string{"SELECT 'ä;ö', `日;本`", "SELECT 2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, err := Split(tt.text, tt.mode)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, st := range list {
				got = append(got, st.Text)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestSplitLines(t *testing.T) {
	got, err := Split("-- first\n\nSELECT\n1;\nSELECT 2; SELECT 3", Mode{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Statement{{"SELECT\n1", 3}, {"SELECT 2", 5}, {"SELECT 3", 5}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestSplitErrors(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		line       int
	}{
		{"string", "SELECT 1;\nSELECT 'a", 2},
		{"string that ends with an escape", `SELECT 'a\'`, 1},
		{"name", "SELECT `a", 1},
		{"comment", "SELECT 1;\n\n/* a", 3},
		{"executed comment", "SELECT 1;\n/*! SELECT 2; ", 2},
		{"no delimiter", "DELIMITER \nSELECT 1", 1},
		{"backslash in a delimiter", "\nDELIMITER \\\\\nSELECT 1", 2},
	} {
		_, err := Split(tt.text, Mode{})
		var e *Error
		if !errors.As(err, &e) || e.Line != tt.line {
			t.Errorf("%s: got %v, want an error at line %d", tt.name, err, tt.line)
		}
	}
}

func TestParameters(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		names      []string
	}{
		{"SELECT 1", "SELECT 1", nil},
		{"SELECT c FROM t WHERE id = :id", "SELECT c FROM t WHERE id = ?", []string{"id"}},
		{"INSERT INTO t VALUES (:a,:b_2, :a)", "INSERT INTO t VALUES (?,?, ?)", []string{"a", "b_2", "a"}},
		{"SELECT ':a', \":b\", `:c`, :d", "SELECT ':a', \":b\", `:c`, ?", []string{"d"}},
		{"SELECT 1 /* :a */ -- :b\n, :c # :d", "SELECT 1 /* :a */ -- :b\n, ? # :d", []string{"c"}},
		{"SET @a := :b", "SET @a := ?", []string{"b"}},
		{"SELECT a::b, '12:30:00', :1", "SELECT a::b, '12:30:00', :1", nil},
		{"/*!50000 SELECT :a */", "/*!50000 SELECT ? */", []string{"a"}},
		{"SELECT '?' /* ? */", "SELECT '?' /* ? */", nil},
		{"loop_1: LOOP", "loop_1: LOOP", nil},
		{"SELECT :ä", "SELECT :ä", nil},
	} {
		text, names, err := Parameters(tt.text, Mode{})
		if err != nil || text != tt.want || !cmp.Equal(names, tt.names) {
			t.Errorf("%q: got %q %v %v, want %q %v", tt.text, text, names, err, tt.want, tt.names)
		}
	}
	if _, _, err := Parameters("SELECT ?", Mode{}); !errors.Is(err, ErrQuestionMark) {
		t.Errorf("a question mark: %v", err)
	}
}

func TestKeyword(t *testing.T) {
	for text, want := range map[string]string{
		"select 1":                  "SELECT",
		"(SELECT 1) UNION SELECT 2": "SELECT",
		"/* a */ Update t SET a=1":  "UPDATE",
		"/*!50000 INSERT */ INTO t": "INSERT",
		"-- a\nWITH x AS (TABLE t)": "WITH",
		"":                          "",
		"'open":                     "",
		"42":                        "",
	} {
		if got := Keyword(text, Mode{}); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestMayReturnRows(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT 1": true, "(select 1)": true, "CALL p()": true, "WITH a AS (SELECT 1) SELECT * FROM a": true, "SHOW TABLES": true,
		"INSERT INTO t VALUES (1) RETURNING id": true, "delete from t returning id": true,
		"INSERT INTO t VALUES ('RETURNING')": false, "UPDATE t SET `returning` = 1 -- returning": false, "SET @a = 1": false,
		"/*!40000 ALTER TABLE t DISABLE KEYS */": false, "INSERT INTO t SELECT 1": false, "": false,
	} {
		if got := MayReturnRows(text, Mode{}); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestParseMode(t *testing.T) {
	for text, want := range map[string]Mode{
		"": {}, "STRICT_TRANS_TABLES": {}, "ANSI_QUOTES,NO_BACKSLASH_ESCAPES": {true, true}, "ansi_quotes": {ANSIQuotes: true},
	} {
		if got := ParseMode(text); got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// FuzzSplit checks what holds of any text: statements are parts of it, in order,
// neither empty nor with blanks at their ends; split again they stay what they are;
// and putting the marks of parameters changes nothing but the parameters.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{
		"SELECT 1; SELECT ':a', :b", "DELIMITER //\nBEGIN; END//", "/*! a '*/' */ ; -- b\n# c\n`d;`", `'\';"`, "\\g/*M!*/;\\G",
		"/*!/*;*/;*/;:", "delimiter delimiter\ndelimiter;delimiter",
	} {
		f.Add(seed, false, false)
		f.Add(seed, true, true)
	}
	f.Fuzz(func(t *testing.T, text string, noBackslash, ansi bool) {
		mode := Mode{noBackslash, ansi}
		list, err := Split(text, mode)
		if err != nil {
			return
		}
		rest := text
		for _, st := range list {
			_, after, found := strings.Cut(rest, st.Text)
			if !found {
				t.Fatalf("%q is not a part of %q", st.Text, rest)
			}
			rest = after
			if st.Text == "" || isSpace(st.Text[0]) || isSpace(st.Text[len(st.Text)-1]) {
				t.Errorf("statement %q", st.Text)
			}
			checkStatement(t, st.Text, mode)
		}
	})
}

func checkStatement(t *testing.T, text string, mode Mode) {
	marked, names, err := Parameters(text, mode)
	if errors.Is(err, ErrQuestionMark) {
		return
	}
	if err != nil {
		t.Fatalf("%q cannot be scanned a second time: %v", text, err)
	}
	if want := len(text) - len(strings.Join(names, "")); len(marked) != want {
		t.Errorf("%q became %q with %q", text, marked, names)
	}
	Keyword(text, mode)
}
