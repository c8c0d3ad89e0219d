// Package sqltext takes texts of SQL apart as far as a client has to: into statements,
// as the mysql client separates them, and a statement at its parameters. It knows
// quotes, comments and the client's DELIMITER, and leaves all else to the server.
package sqltext

import (
	"errors"
	"fmt"
	"iter"
	"strings"
)

// Mode is how a server reads quotes, by its sql_mode.
type Mode struct {
	// NoBackslashEscapes has a backslash in a string mean itself.
	NoBackslashEscapes bool
	// ANSIQuotes has double quotes enclose names, in which a backslash means itself.
	ANSIQuotes bool
}

// ParseMode reads the two out of the value of sql_mode.
func ParseMode(sqlMode string) Mode {
	var m Mode
	for name := range strings.SplitSeq(strings.ToUpper(sqlMode), ",") {
		m.NoBackslashEscapes = m.NoBackslashEscapes || name == "NO_BACKSLASH_ESCAPES"
		m.ANSIQuotes = m.ANSIQuotes || name == "ANSI_QUOTES"
	}
	return m
}

// Statement is one statement of a text, without its delimiter and the comments around it.
type Statement struct {
	Text string
	// Line is where it begins, counted from 1.
	Line int
}

// Error is a text that cannot be taken apart.
type Error struct {
	// Line is where the fault begins, counted from 1.
	Line   int
	Detail string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Detail) }

// Split returns the statements of a text. They are separated by ";", by what a
// DELIMITER command sets in its place, or by \g and \G. Quotes and comments hide a
// delimiter; so does a comment that the server executes (/*! … */), where the mysql
// client would cut it in two. Comments within a statement are part of it. The error is
// an *Error.
func Split(text string, mode Mode) ([]Statement, error) {
	s := scanner{text: text, mode: mode, delimiter: ";"}
	var out []Statement
	for {
		st, err := s.statement()
		if err != nil {
			return nil, err
		}
		if st.Text != "" {
			out = append(out, st)
		}
		if s.pos == len(text) {
			return out, nil
		}
	}
}

// kind is what a token is to a client.
type kind int

const (
	blank   kind = iota // also a comment that the server does not execute
	code                // a byte, a word or a number
	quoted              // a string or a quoted name
	open                // the begin of a comment that is executed
	closing             // and its end
)

type scanner struct {
	text      string
	mode      Mode
	delimiter string
	pos       int
	executed  bool // within a comment that is executed
}

// statement reads up to the next delimiter, and over it.
func (s *scanner) statement() (Statement, error) {
	begin, end := -1, -1
	s.executed = false
	for s.pos < len(s.text) {
		if n := s.atDelimiter(); n > 0 {
			s.pos += n
			break
		}
		if begin < 0 && s.atDelimiterCommand() {
			if err := s.delimiterCommand(); err != nil {
				return Statement{}, err
			}
			continue
		}
		at := s.pos
		k, err := s.token()
		if err != nil {
			return Statement{}, err
		}
		if k == blank {
			continue
		}
		if begin < 0 {
			begin = at
		}
		end = s.pos
	}
	if begin < 0 {
		return Statement{}, nil
	}
	if s.executed {
		return Statement{}, s.fail(begin, "a statement ends within a comment /*! that is not closed")
	}
	return Statement{Text: s.text[begin:end], Line: s.line(begin)}, nil
}

// token reads one token, at least a byte.
func (s *scanner) token() (kind, error) {
	rest := s.text[s.pos:]
	c := rest[0]
	switch {
	case isSpace(c):
		s.pos++
		return blank, nil
	case c == '#', isDashComment(rest):
		s.toEndOfLine()
		return blank, nil
	case strings.HasPrefix(rest, "/*"):
		return s.comment(rest)
	case s.executed && strings.HasPrefix(rest, "*/"):
		s.executed = false
		s.pos += 2
		return closing, nil
	case c == '\'' || c == '"' || c == '`':
		return quoted, s.quote(c)
	}
	s.pos++
	return code, nil
}

// comment reads a comment, or only the begin of one that is executed.
func (s *scanner) comment(rest string) (kind, error) {
	executed := strings.HasPrefix(rest, "/*!") || strings.HasPrefix(rest, "/*M!")
	if executed && !s.executed {
		s.executed = true
		s.pos += strings.IndexByte(rest, '!') + 1
		return open, nil
	}
	n := strings.Index(rest[2:], "*/")
	if n < 0 {
		return blank, s.fail(s.pos, "a comment /* is not closed")
	}
	s.pos += 2 + n + 2
	if strings.HasPrefix(rest, "/*+") { // a hint to the optimizer
		return code, nil
	}
	return blank, nil
}

// quote reads to the closing quote. A quote that is doubled is part of the text, as if
// two texts stood side by side, which is how it is read here.
func (s *scanner) quote(q byte) error {
	escapes := !s.mode.NoBackslashEscapes && q != '`' && !(q == '"' && s.mode.ANSIQuotes)
	for i := s.pos + 1; i < len(s.text); i++ {
		switch {
		case s.text[i] == '\\' && escapes:
			i++
		case s.text[i] == q:
			s.pos = i + 1
			return nil
		}
	}
	return s.fail(s.pos, fmt.Sprintf("a text that begins with %c is not closed", q))
}

// atDelimiter is the length of a delimiter here, 0 where there is none. A delimiter
// that is a word is not found within longer words.
func (s *scanner) atDelimiter() int {
	if s.executed {
		return 0
	}
	rest := s.text[s.pos:]
	if strings.HasPrefix(rest, `\g`) || strings.HasPrefix(rest, `\G`) {
		return 2
	}
	d := s.delimiter
	switch {
	case !strings.HasPrefix(rest, d),
		isWord(d[0]) && s.pos > 0 && isWord(s.text[s.pos-1]),
		isWord(d[len(d)-1]) && len(rest) > len(d) && isWord(rest[len(d)]):
		return 0
	}
	return len(d)
}

const delimiterWord = "delimiter"

func (s *scanner) atDelimiterCommand() bool {
	rest := s.text[s.pos:]
	n := len(delimiterWord)
	return len(rest) >= n && strings.EqualFold(rest[:n], delimiterWord) && (len(rest) == n || isSpace(rest[n]))
}

// delimiterCommand takes the first word after DELIMITER; as in the client, what
// follows on the line is ignored.
func (s *scanner) delimiterCommand() error {
	begin := s.pos
	s.toEndOfLine()
	words := strings.Fields(s.text[begin+len(delimiterWord) : s.pos])
	if len(words) == 0 {
		return s.fail(begin, "DELIMITER must be followed by one on the same line")
	}
	if strings.Contains(words[0], `\`) {
		return s.fail(begin, "a delimiter must not contain a backslash")
	}
	s.delimiter = words[0]
	return nil
}

func (s *scanner) toEndOfLine() {
	if n := strings.IndexByte(s.text[s.pos:], '\n'); n >= 0 {
		s.pos += n
		return
	}
	s.pos = len(s.text)
}

func (s *scanner) line(pos int) int { return 1 + strings.Count(s.text[:pos], "\n") }

func (s *scanner) fail(pos int, detail string) error {
	return &Error{Line: s.line(pos), Detail: detail}
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// isDashComment: two dashes begin a comment where a blank, a control character or the
// end follows; elsewhere they subtract a negative number.
func isDashComment(rest string) bool {
	return strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' ' || rest[2] == 0x7f)
}

// isWord: bytes of other alphabets are letters, as they are to the server.
func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// ErrQuestionMark is a statement with a "?", which has no name.
var ErrQuestionMark = errors.New("a parameter is written as :name, not as ?")

// Parameters puts a "?" for each parameter :name of a statement, which the server
// prepares, and returns their names in the order of their places. A name may come more
// than once. A colon in a text or a comment, before "=" or after another colon begins
// no parameter.
func Parameters(statement string, mode Mode) (text string, names []string, err error) {
	s := scanner{text: statement, mode: mode}
	var out strings.Builder
	for s.pos < len(statement) {
		at := s.pos
		k, err := s.token()
		if err != nil {
			return "", nil, err
		}
		if k == code && statement[at] == '?' {
			return "", nil, ErrQuestionMark
		}
		if k == code && statement[at] == ':' && (at == 0 || statement[at-1] != ':') {
			if name := word(statement[s.pos:]); name != "" {
				names = append(names, name)
				s.pos += len(name)
				out.WriteByte('?')
				continue
			}
		}
		out.WriteString(statement[at:s.pos])
	}
	return out.String(), names, nil
}

// word is the name that a text begins with, "" where it begins with none.
func word(text string) string {
	n := 0
	for n < len(text) && isWord(text[n]) && text[n] < 0x80 {
		n++
	}
	if n == 0 || text[0] >= '0' && text[0] <= '9' {
		return ""
	}
	return text[:n]
}

// words yields the words of a statement, in capitals, but for those in quotes and
// comments.
func words(statement string, mode Mode) iter.Seq[string] {
	return func(yield func(string) bool) {
		s := scanner{text: statement, mode: mode}
		for s.pos < len(statement) {
			at := s.pos
			k, err := s.token()
			if err != nil {
				return
			}
			if k != code {
				continue
			}
			w := word(statement[at:])
			s.pos = max(s.pos, at+len(w))
			if w != "" && !yield(strings.ToUpper(w)) {
				return
			}
		}
	}
}

// Keyword is the first word of a statement, in capitals, "" where it has none.
func Keyword(statement string, mode Mode) string {
	for w := range words(statement, mode) {
		return w
	}
	return ""
}

// rowless are the keywords of statements that give no rows, but for a RETURNING.
var rowless = map[string]bool{
	"INSERT": true, "UPDATE": true, "DELETE": true, "REPLACE": true, "SET": true, "DO": true, "CREATE": true, "DROP": true,
	"ALTER": true, "TRUNCATE": true, "RENAME": true, "LOCK": true, "UNLOCK": true, "BEGIN": true, "START": true, "COMMIT": true,
	"ROLLBACK": true, "SAVEPOINT": true, "RELEASE": true, "USE": true, "GRANT": true, "REVOKE": true, "FLUSH": true,
}

// MayReturnRows reports whether a statement may be answered with rows.
func MayReturnRows(statement string, mode Mode) bool {
	first := true
	for w := range words(statement, mode) {
		if first && !rowless[w] || w == "RETURNING" {
			return true
		}
		first = false
	}
	return false
}
