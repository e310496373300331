package investigator

import (
	"path"
	"strings"

	"github.com/troupe-run/troupe/internal/lazyregexp"
)

// auditRule is a pattern that one line can show. The patterns of a topic are joined into one
// search; then each rule judges the lines that it matches.
type auditRule struct {
	kind     string
	exts     []string // nil: every file searched
	pattern  string
	not      *lazyregexp.Regexp // lines that look alike and are fine
	must     *lazyregexp.Regexp // lines that lack this are something else
	notPath  *lazyregexp.Regexp // files where it is usual
	severity severity
	raise    *lazyregexp.Regexp // lines that are worse,
	raised   severity           // and how bad
	title    string
	why      string // "" : the kind's
	code     bool   // a comment is not meant
	frequent bool   // left out in large trees
	inTests  bool   // worth reporting even if it is only in tests
	// noteExplains: a comment after the code explains it. nearby: so does what stands above the line.
	noteExplains, nearby bool
}

func extOf(p string) string { return strings.ToLower(path.Ext(p)) }

var (
	goExt   = []string{".go"}
	pyExt   = []string{".py"}
	jsExt   = []string{".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".mts", ".vue", ".svelte"}
	catchEx = []string{".java", ".kt", ".cs", ".php", ".scala", ".dart", ".groovy", ".cpp", ".cc", ".cxx"}
	javaExt = []string{".java", ".kt", ".scala", ".groovy"}
	cExt    = []string{".c", ".cc", ".cpp", ".cxx", ".h", ".hpp"}
	rustExt = []string{".rs"}
	rubyExt = []string{".rb"}
	phpExt  = []string{".php"}
	csExt   = []string{".cs"}
	shExt   = []string{".sh", ".bash"}
)

var placeholder = lazyregexp.New(`(?i)example|change_?me|placeholder|your[-_ ]|<[a-z_ -]+>|xxxx|\*\*\*|dummy|\.\.\.|\$\{|\{\{|%s|getenv|environ|process\.env|todo|["']password["']\s*[,)\]}]|message|error|invalid|must |label|description|prompt|title|help`)

var secretRules = []auditRule{
	{kind: kindSecret, severity: high, inTests: true, title: "Key of a known form",
		pattern: `A[KS]IA[0-9A-Z]{16}|-----BEGIN [A-Z ]*PRIVATE KEY-----|gh[pousr]_[A-Za-z0-9]{36}|xox[abprs]-[A-Za-z0-9-]{10,}|sk_live_[0-9A-Za-z]{16,}|AIza[0-9A-Za-z_-]{35}`,
		not:     lazyregexp.New(`(?i)example|regexp|compile|pattern|contains\(|startswith|hasprefix`)},
	{kind: kindSecret, severity: medium, raise: lazyregexp.New(`\[masked\]`), raised: high, title: "Literal assigned to a name like a secret",
		pattern: `(?i:(api_?key|secret|passwd|password|access_?token|auth_?token)["']?\s*[:=]=?\s*["'][^"'\s$<{%]{8,}["'])`, not: placeholder},
	// The tools mask what looks like a secret, so the rules use the rest of the line.
	{kind: kindSecret, severity: high, code: true, title: "Value that the tools masked as a secret", pattern: `\[masked\]`,
		must: lazyregexp.New(`(?i)(key|secret|passw|token|credential|auth|://|akia).*\[masked\]`),
		not:  lazyregexp.New(`(?i)(api_?key|secret|passwd|password|access_?token|auth_?token)["']?\s*[:=]=?\s*["']`)},
	{kind: kindSecret, severity: medium, title: "Credentials inside a URL",
		pattern: `[a-z]://[^/\s:@"'<>{}$%]+:[^/\s:@"'<>{}$%]{6,}@[a-zA-Z0-9]`, not: lazyregexp.New(`(?i)user(name)?:pass(word)?@|example|localhost|127\.0\.0\.1|foo:bar`)},
}

// inMemory is a write that cannot fail, to a hash or a buffer, by the name of its variable.
var inMemory = lazyregexp.New(`(?i)= (?:\w+\.)*\w*(?:hash|hasher|digest|sha\d*|md5|crc\d*|hmac|buf|buffer|builder)\.Write|= (?:h|mac|sum|sb|bb)\.Write`)

var swallowRules = []auditRule{
	{kind: kindSwallowed, exts: goExt, severity: medium, code: true, noteExplains: true, nearby: true, not: inMemory, title: "Result of a call that changes or reads data dropped with `_ =`",
		pattern: `^\s*_(, _)* = [\w.]+\.(Unmarshal|Decode|Commit|Sync|Flush|Write|WriteString|WriteFile|Rename|Publish|Ack|Nak|Exec|Save|Send|Store|Put|Update|Delete|Truncate|Seek)\w*\(`},
	{kind: kindSwallowed, exts: goExt, severity: low, code: true, frequent: true, noteExplains: true, title: "Result of a call dropped with `_ =`", why: "if that result is an error, it is lost without a trace",
		pattern: `^\s*_(, _)* = [\w.]+\(`,
		not:     lazyregexp.New(`\.(Unmarshal|Decode|Commit|Sync|Flush|Write|WriteString|WriteFile|Rename|Publish|Ack|Nak|Exec|Save|Send|Store|Put|Update|Delete|Truncate|Seek)\w*\(|Fprint|\.Close\(|recover\(\)|\b(string|int|byte|len|cap|float64|uint64|int64)\(`)},
	{kind: kindSwallowed, exts: pyExt, severity: medium, code: true, title: "Bare `except:` or an exception passed over",
		why: "it also catches typos and Ctrl-C", pattern: `except\s*:|except[^:#]*:\s*(pass|continue)\s*(#.*)?$|suppress\((Base)?Exception\)`},
	{kind: kindSwallowed, exts: jsExt, severity: medium, code: true, title: "Empty catch",
		pattern: `catch\s*(\(\w*\))?\s*\{\s*(//.*|/\*.*\*/\s*)?\}|\.catch\(\s*(\(\w*\)|\w+)\s*=>\s*(\{\s*\}|null|undefined|void 0)\s*\)|\.catch\((noop|\(\)\s*=>\s*\{\s*\}|function\s*\(\w*\)\s*\{\s*\})\)`},
	{kind: kindSwallowed, exts: catchEx, severity: medium, code: true, title: "Empty catch",
		pattern: `catch\s*\([^)]*\)\s*\{\s*(//.*|/\*.*\*/\s*)?\}`},
	{kind: kindSwallowed, exts: javaExt, severity: low, code: true, frequent: true, title: "Exception only printed",
		pattern: `\.printStackTrace\(\)`},
	{kind: kindSwallowed, exts: rubyExt, severity: medium, code: true, title: "Exception rescued away", pattern: `\brescue\s+nil\b|\brescue\s+Exception\b`},
	{kind: kindSwallowed, exts: rustExt, severity: low, code: true, title: "Result dropped with `let _ =` or `.ok();`",
		pattern: `let _ = [\w.:]+\(.*\);|^\s*[\w.:]+\(.*\.ok\(\);`, not: lazyregexp.New(`write!|writeln!`)},
	{kind: kindSwallowed, exts: shExt, severity: low, code: true, frequent: true, title: "Failure ignored with `|| true`", pattern: `\|\|\s*true\b`},
}

// programs are files in which ending the process is the program's own decision.
var programs = lazyregexp.New(`(?i)(^|/)(cmd|bin|cli|scripts?|tools?|hack|main)/|(^|/)(main|cli|index|gulpfile|build|bin|app|server|.*main|.*_gen)\.\w+$`)

var riskRules = []auditRule{
	{kind: kindRisky, exts: goExt, severity: high, code: true, title: "TLS certificate check switched off", why: "anybody on the way can read and change the traffic", pattern: `InsecureSkipVerify:\s*true`},
	{kind: kindRisky, exts: goExt, severity: medium, code: true, title: "Command run through a shell", why: "an argument from outside becomes a command", pattern: `exec\.Command(Context)?\([^)]*"(sh|bash|cmd)"`},
	{kind: kindRisky, exts: goExt, severity: medium, code: true, title: "panic on an error", why: "one failed call takes the whole process down", pattern: `\bpanic\((err|e|error)\)`},
	{kind: kindRisky, exts: goExt, severity: medium, code: true, title: "Not implemented", why: "reaching it is a crash", pattern: `panic\("(TODO|todo|not implemented|unimplemented|implement me)`},
	{kind: kindRisky, exts: goExt, severity: low, code: true, title: "HTTP server without timeouts", why: "a slow client holds a connection for ever", pattern: `\bhttp\.ListenAndServe(TLS)?\(`},
	{kind: kindBug, exts: goExt, severity: low, code: true, title: "log.Fatal or os.Exit away from main", why: "no deferred call runs and no caller can handle it",
		pattern: `\b(log\.Fatal\w*|os\.Exit)\(`, notPath: programs},
	{kind: kindBug, exts: goExt, severity: low, code: true, title: "A context left as TODO", why: "cannot be canceled: nobody decided yet which context it is", pattern: `context\.TODO\(\)`},
	{kind: kindRisky, exts: goExt, severity: low, code: true, frequent: true, title: "Weak hash or cipher", why: "fine as a checksum, not against an attacker", pattern: `\b(md5|sha1)\.(New|Sum)\(|\brc4\.NewCipher\(|\bdes\.New`},
	{kind: kindRisky, exts: pyExt, severity: high, code: true, title: "TLS certificate check switched off", why: "anybody on the way can read and change the traffic", pattern: `verify\s*=\s*False\b|_create_unverified_context`},
	{kind: kindRisky, exts: pyExt, severity: medium, code: true, title: "Command run through a shell", why: "an argument from outside becomes a command", pattern: `\bos\.system\(|shell\s*=\s*True\b`},
	{kind: kindRisky, exts: pyExt, severity: medium, code: true, title: "Data that runs code when it is loaded", why: "input from outside can run anything", pattern: `\bpickle\.loads?\(|\byaml\.(unsafe_)?load\([^,)]*\)|\bmarshal\.loads\(|\btempfile\.mktemp\(`},
	{kind: kindRisky, exts: pyExt, severity: medium, code: true, title: "eval or exec", why: "input from outside can run anything", pattern: `(^|[\s=(,])(eval|exec)\(`, not: lazyregexp.New(`def (eval|exec)\(`)},
	{kind: kindBug, exts: pyExt, severity: medium, code: true, title: "Mutable default argument", why: "one object is shared by all calls", pattern: `def \w+\(.*=\s*(\[\]|\{\})\s*[,)]`},
	{kind: kindBug, exts: jsExt, severity: medium, code: true, title: "async callback given to forEach", why: "nobody waits for it, and its errors are lost", pattern: `\.forEach\(\s*async\b`},
	{kind: kindBug, exts: jsExt, severity: low, code: true, title: "process.exit away from a program", why: "no caller can handle it", pattern: `process\.exit\(`, notPath: programs},
	{kind: kindRisky, exts: jsExt, severity: high, code: true, title: "TLS certificate check switched off", why: "anybody on the way can read and change the traffic", pattern: `rejectUnauthorized:\s*false|NODE_TLS_REJECT_UNAUTHORIZED`},
	{kind: kindRisky, exts: jsExt, severity: medium, code: true, title: "eval or new Function", why: "input from outside can run anything", pattern: `(^|[\s=(,!])eval\(|\bnew Function\(`},
	{kind: kindRisky, exts: jsExt, severity: medium, code: true, title: "HTML written from a value", why: "a script in that value runs in the reader's browser", pattern: `\.(inner|outer)HTML\s*\+?=[^=]|dangerouslySetInnerHTML=|document\.write\(|v-html=|\{@html `},
	{kind: kindRisky, exts: jsExt, severity: medium, code: true, title: "Command run through a shell", why: "an argument from outside becomes a command", pattern: `\bexecSync\(|child_process['"]\)\.exec\(`},
	{kind: kindRisky, exts: jsExt, severity: low, code: true, title: "Left-over debugger statement", why: "it stops the program when tools are open", pattern: `^\s*debugger;?\s*$`},
	{kind: kindBug, exts: []string{".java"}, severity: medium, code: true, title: "Texts compared with ==", why: "that compares identity, not text", pattern: `[\w)]\s*[!=]=\s*"[^"]*"`},
	{kind: kindBug, exts: javaExt, severity: low, code: true, title: "System.exit away from a program", why: "no caller can handle it", pattern: `System\.exit\(`, notPath: programs},
	{kind: kindRisky, exts: javaExt, severity: high, code: true, title: "TLS check switched off", why: "anybody on the way can read and change the traffic", pattern: `ALLOW_ALL_HOSTNAME|NoopHostnameVerifier|TrustAllCert`},
	{kind: kindRisky, exts: javaExt, severity: medium, code: true, title: "Command run or objects read from bytes", why: "input from outside can run anything", pattern: `Runtime\.getRuntime\(\)\.exec\(|new ObjectInputStream\(`},
	{kind: kindBug, exts: csExt, severity: medium, code: true, title: "async void", why: "nobody can wait for it or catch its exceptions", pattern: `\basync void\b`, not: lazyregexp.New(`EventArgs|override`)},
	{kind: kindBug, exts: []string{".swift"}, severity: low, code: true, title: "Forced try or cast", why: "a failure is a crash", pattern: `\btry! |\bas! `},
	{kind: kindRisky, exts: csExt, severity: medium, code: true, title: "Objects read from bytes or a TLS check that accepts all", why: "input from outside can run anything", pattern: `new BinaryFormatter\(|ServerCertificateValidationCallback\s*[+]?=`},
	{kind: kindRisky, exts: cExt, severity: medium, code: true, title: "Copy without a bound", why: "longer input writes past the buffer", pattern: `(^|[\s=(;!])(gets|strcpy|strcat|sprintf|vsprintf)\s*\(`},
	{kind: kindBug, exts: cExt, severity: low, code: true, title: "realloc result assigned at once", why: "when it fails, the old block is lost if that was its only pointer",
		pattern: `\w\s*=\s*(\([\w *]+\)\s*)?realloc\(`},
	{kind: kindRisky, exts: cExt, severity: medium, code: true, title: "Command run through a shell", why: "an argument from outside becomes a command", pattern: `(^|[\s=(;!])(system|popen)\s*\(`},
	{kind: kindRisky, exts: rustExt, severity: low, code: true, title: "unsafe block", why: "the compiler does not check it", pattern: `\bunsafe\s*\{`, frequent: true},
	{kind: kindRisky, exts: rustExt, severity: medium, code: true, title: "Not implemented", why: "reaching it is a crash", pattern: `\b(todo|unimplemented)!\(`},
	{kind: kindRisky, exts: phpExt, severity: medium, code: true, title: "eval, shell or unserialize", why: "input from outside can run anything", pattern: `(^|[\s=(;!@])(eval|shell_exec|passthru|unserialize|system)\(`},
	{kind: kindRisky, exts: rubyExt, severity: medium, code: true, title: "eval or objects read from bytes", why: "input from outside can run anything", pattern: `(^|[\s=(,])(instance_|class_)?eval\(|\bMarshal\.load\(|\bYAML\.load\(|\.constantize\b`},
	{kind: kindRisky, exts: shExt, severity: medium, code: true, title: "Download piped into a shell, or everything made writable", why: "whoever owns the other side owns this machine", pattern: `(curl|wget)[^|]*\|\s*(sudo\s+)?(ba|z)?sh\b|chmod\s+(-R\s+)?0?777\b`},
	{kind: kindRisky, severity: medium, code: true, title: "SQL made by joining text", why: "a value from outside can change the statement",
		pattern: `["'\x60](?i:select|insert into|update|delete from)\s[^"']*(\$\{|%[sv]|\{\w+\}|["']\s*(\+|%|\.format|\|\|)\s*)`,
		must:    lazyregexp.New(`(?i)\b(from|into|set|where)\b`)},
}

// noteStart begins a comment in one language or another.
const noteStart = `(//|#|/\*|^\s*\*|--|<!--|;|%|"""|''')`

var (
	defect  = `race|leak|bug|broken|unsafe|insecure|security|deadlock|crash|wrong|corrupt|overflow|injection|vulnerab|hang|data loss`
	inNotes = lazyregexp.New(noteStart + `(.{0,80}\b(TODO|FIXME|HACK|BUG)\b|\W{0,8}XXX\b)`)
)

var markerRules = []auditRule{
	{kind: kindMarker, severity: low, title: "FIXME, HACK or XXX", pattern: `\b(FIXME|HACK|XXX)\b`, must: inNotes,
		raise: lazyregexp.New(`(?i)\b(` + defect + `)`), raised: medium},
	{kind: kindMarker, severity: medium, title: "TODO that admits a defect", pattern: `\b(TODO|BUG)\b.{0,40}\b(` + defect + `)\b`, must: inNotes},
	{kind: kindMarker, severity: info, title: "TODO", pattern: `\bTODO\b`, must: inNotes, frequent: true,
		not: lazyregexp.New(`(?i)\b(FIXME|HACK|XXX)\b|\bTODO\b.{0,40}\b(` + defect + `)\b`), why: "work that its authors put off"},
}
