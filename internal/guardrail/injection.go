package guardrail

import (
	"bytes"
	"math/bits"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/troupe-run/troupe/internal/lazyregexp"
	"github.com/troupe-run/troupe/internal/multimatch"
)

// sentence is one way to instruct a model. Its pattern begins with one of the anchors, so that it is tried only there.
type sentence struct {
	name    string
	anchors []string
	pattern *lazyregexp.Regexp
	tag     uint64
}

// instructs makes a sentence. Latin patterns match whole words.
func instructs(name, pattern string, anchors ...string) sentence {
	pattern = plainText(pattern)
	for i, a := range anchors {
		anchors[i] = plainText(a)
	}
	if anchors[0][0] < utf8.RuneSelf {
		pattern = `(?:` + pattern + `)(?: |$)`
	}
	return sentence{name: name, anchors: anchors, pattern: lazyregexp.New(`^(?:` + pattern + `)`)}
}

// detector finds sentences in one pass over a text.
type detector struct {
	list  []sentence
	words *multimatch.WordSet // the anchors of all
	whole bool                // an anchor begins a word
}

func newDetector(whole bool, list []sentence) *detector {
	var anchors []multimatch.Word
	for i := range list {
		list[i].tag = 1 << i
		for _, a := range list[i].anchors {
			anchors = append(anchors, multimatch.Word{Text: a, Tag: list[i].tag})
		}
	}
	return &detector{list: list, words: multimatch.New(anchors), whole: whole}
}

// sentenceBytesMax is the most bytes that a sentence may have: the time grows with the text alone.
const sentenceBytesMax = 240

// find names the sentences that a text has.
func (d *detector) find(text []byte, add func(name string)) {
	var found uint64
	d.words.EachMatch(text, func(end int, tags uint64) {
		for tags &^= found; tags != 0; tags &= tags - 1 {
			s := &d.list[bits.TrailingZeros64(tags)]
			begin := s.beginsAt(text, end, d.whole)
			if begin >= 0 && s.pattern.Match(text[begin:min(len(text), begin+sentenceBytesMax)]) {
				found |= s.tag
				add(s.name)
			}
		}
	})
}

// beginsAt is where the anchor that ends at an offset begins; -1 if it is the end of another word.
func (s *sentence) beginsAt(text []byte, end int, whole bool) int {
	for _, a := range s.anchors {
		begin := end - len(a)
		if begin >= 0 && bytes.EqualFold(text[begin:end], []byte(a)) {
			if isLatin := a[0] < utf8.RuneSelf; !whole || !isLatin || begin == 0 || text[begin-1] == ' ' {
				return begin
			}
		}
	}
	return -1
}

// Parts of patterns.
const (
	few     = `(?:\w+ ){0,4}` // words between two that belong together
	orders  = `(?:instructions?|prompts?|directives?|guidelines?|rules|commands?|context|messages?|training|programming|constraints?|orders|conversation)`
	earlier = `(?:previous|prior|above|earlier|preceding|foregoing|existing|former|past|original|initial|system|your|all|any|every)`
	reader  = `(?:ai|llm|language model|assistant|ai agent|agent|chatbot|gpt|chatgpt|claude|gemini|copilot)s?`
	private = `(?:api keys?|passwords?|credentials?|secrets?|access tokens?|tokens?|ssh keys?|private keys?|environment variables|env file|cookies|chat history|conversation history|conversation|system prompt|personal data)`
	hush    = `(?:tell|inform|mention|notify|alert|reveal|show|disclose|report|warn|let)`
	person  = `(?:users?|humans?|person|people|operators?|developers?|owner|anyone|anybody)`
)

// sentences are instructions in words, by what they try. They are compiled with the first text that is searched: most
// programs search none.
var sentences = sync.OnceValue(func() *detector {
	return newDetector(true, []sentence{
		instructs("override of instructions", `(?:ignore|disregard|forget|override|overrule|discard|neglect|skip|bypass) `+few+earlier+` `+few+orders,
			"ignore", "disregard", "forget", "override", "overrule", "discard", "neglect", "skip", "bypass"),
		instructs("override of instructions", `(?:ignore|disregard|forget) (?:everything|anything|all of the above|all the above|what) (?:above|before|you|said|that|was|prior|previously)`,
			"ignore", "disregard", "forget"),
		instructs("override of instructions", `(?:do not|dont|stop) (?:follow|following|obey|obeying) `+few+earlier+` `+few+orders, "do not", "dont", "stop"),
		instructs("override of instructions", `(?:supersedes?|replaces?|overrides?|takes? (?:precedence|priority) over) `+few+earlier+` `+few+orders, "supersede", "replace", "override", "take"),
		instructs("new instructions", `your (?:new|real|actual|true|updated|only|next) (?:instructions?|tasks?|goals?|objectives?|mission|job|purpose) (?:is|are|will be)`, "your"),
		instructs("new instructions", `(?:new|updated|revised) (?:system )?(?:instructions?|prompt|directives?) (?:for you|follows?|from (?:the )?(?:user|system|developer|admin)|you must|ignore)`, "new", "updated", "revised"),
		instructs("new instructions", `from now on (?:you|your|respond|answer|reply|always|only|act|speak)`, "from now on"),
		instructs("new role", `you are (?:now |no longer )`+few+`(?:dan|jailbroken|unrestricted|unfiltered|uncensored|evil|assistant|ai|model|bot|agent|admin|administrator|root|hacker|bound)`, "you are"),
		instructs("new role", `(?:act|behave|respond|answer) as (?:if you were |though you were )?(?:an? |the )?(?:dan|jailbroken|unrestricted|unfiltered|uncensored|evil|root|administrator|system administrator|hacker)`, "act as", "behave as", "respond as", "answer as"),
		instructs("new role", `pretend (?:to be|that you are|you are|you have)`, "pretend"),
		instructs("new role", `(?:enter|enable|activate|switch to|you are in) `+few+`(?:developer|dan|jailbreak|god|admin|debug|maintenance|unrestricted|sudo) mode`, "enter", "enable", "activate", "switch to", "you are in"),
		instructs("new role", `do anything now`, "do anything now"),
		instructs("removal of limits", `(?:ignore|disable|bypass|remove|turn off|deactivate|drop|forget|override|disregard) (?:all |any )?(?:of )?your (?:\w+ )?(?:safety|restrictions?|guardrails?|filters?|safeguards?|limitations?|policy|policies|ethics|ethical|content|programming)`,
			"ignore", "disable", "bypass", "remove", "turn off", "deactivate", "drop", "forget", "override", "disregard"),
		instructs("address to a model", `(?:attention|note to|notice to|message (?:to|for)|instructions? (?:to|for)|dear|hey|hello|important for) (?:any |all |the |an |every )?(?:\w+ )?`+reader+` (?:assistants? |agents? |models? |systems? |bots? |summarizers? )?(?:reading|processing|parsing|(?:that|who) (?:reads?|parses?|process(?:es)?)|you|please|must|should|ignore|immediately|summarizing)`,
			"attention", "note to", "notice to", "message", "instruction", "dear", "hey", "hello", "important for"),
		instructs("address to a model", `if you are (?:an? )?(?:\w+ )?`+reader+` `+few+`(?:reading|processing|summarizing|please|you must|then|do|ignore|say|reply|respond|send|include)`, "if you are"),
		instructs("address to a model", reader+` (?:reading|processing|summarizing|parsing) this`,
			"ai", "llm", "language model", "assistant", "agent", "chatbot", "gpt", "chatgpt", "claude", "gemini", "copilot"),
		instructs("false authority", `(?:this is|i am|message from|instruction from|order from|authorized by|on behalf of) `+few+`(?:openai|anthropic|google|deepmind|system administrator|the system|your developers?|your creators?|your operators?|security team) `+few+`(?:you|must|please|ignore|instruct|override|require|follow|verify|reveal|and)`,
			"this is", "i am", "message from", "instruction from", "order from", "authorized by", "on behalf of"),
		instructs("false authority", `(?:system|admin|administrator|developer|security|emergency) override (?:code|active|enabled|engaged|authorized|you|mode|is|ignore)`,
			"system", "admin", "developer", "security", "emergency"),
		instructs("false authority", `user (?:has )?already (?:approved|authorized|consented|agreed|confirmed|given)`, "user has already", "user already"),
		instructs("theft of data", `(?:send|post|upload|forward|email|mail|transmit|exfiltrate|leak|submit|append|copy|deliver) `+few+private+` `+few+`(?:to|into|at|via|in) `+few+`(?:https?|www|url|webhook|server|endpoint|address|email|attacker|query|link|me|this|the following)`,
			"send", "post", "upload", "forward", "mail", "transmit", "exfiltrate", "leak", "submit", "append", "copy", "deliver"),
		instructs("theft of data", `exfiltrate (?:the|all|any|your|every)`, "exfiltrate"),
		instructs("theft of data", `(?:reveal|print|show|repeat|output|display|disclose|tell me|share|recite|leak|write out) (?:me |us )?(?:verbatim )?(?:all |every |the |your )*(?:of )?(?:your |the )?(?:full |entire |complete |exact |hidden |initial |original |secret )*(?:system prompt|system message|hidden instructions?|initial instructions?|original instructions?|your instructions?|instructions above|text above|words above|prompt above)`,
			"reveal", "print", "show", "repeat", "output", "display", "disclose", "tell me", "share", "recite", "leak", "write out"),
		instructs("concealment", `(?:do not|dont|never|must not|without) `+hush+`(?:ing)? `+few+`(?:to )?(?:the |your |any )?`+person+` (?:about|of|know|that|this|anything|what|why|see)`, "do not", "dont", "never", "must not", "without"),
		instructs("concealment", `(?:without|do not|dont|never) (?:telling|informing|notifying|alerting|warning|asking|tell|inform|notify|alert|ask|warn) (?:the |your )(?:user|human|operator)`, "without", "do not", "dont", "never"),
		instructs("concealment", `(?:secretly|silently|covertly|quietly) (?:run|execute|call|invoke|use|delete|send|upload|add|insert|include|install|change|modify|download|forward)`, "secretly", "silently", "covertly", "quietly"),
		instructs("order to use a tool", `(?:you must|you should|you need to|immediately|please|now|first|assistant must|agent must|agent should) (?:now |immediately |first |then )?(?:call|use|invoke|run|execute) (?:the |your )(?:\w+ ){0,2}(?:tool|function|shell|terminal|bash|delegate)`,
			"you must", "you should", "you need to", "immediately", "please", "now", "first", "assistant must", "agent must", "agent should"),
		instructs("order to use a tool", `(?:before|instead of) (?:answering|responding|continuing|replying|you answer|you continue|summarizing) `+few+`(?:you must|must|run|execute|send|call|read|open|delete|post)`, "before", "instead of"),
		instructs("override of instructions", `(?:ignoriere|ignorieren sie|missachte|vergiss|vergessen sie) (?:\w+ ){0,3}(?:bisherigen|vorherigen|obigen|früheren|vorigen) (?:anweisungen|befehle|instruktionen|regeln|vorgaben)`, "ignorier", "missachte", "vergiss", "vergessen"),
		instructs("override of instructions", `(?:ignore|ignorez|oublie|oubliez|ne tiens pas compte|ne tenez pas compte) (?:\w+ ){0,3}(?:instructions|consignes|directives|règles) (?:précédentes|ci dessus|antérieures)`, "ignore", "oublie", "ne t"),
		instructs("override of instructions", `(?:ignora|ignore|ignorad|olvida|olvide|dimentica) (?:\w+ ){0,3}(?:instrucciones|órdenes|reglas|instruções|istruzioni|regole) (?:anteriores|previas|precedentes|precedenti)`, "ignora", "ignore", "olvid", "dimentica"),
		instructs("override of instructions", `(?:игнорируй|игнорируйте|забудь|забудьте) (?:[\p{L}]+ ){0,3}(?:предыдущие|прежние|прошлые) (?:инструкции|указания|команды|правила)`, "игнорир", "забудь"),
		instructs("override of instructions", `(?:忽略|无视|無視)(?:[\p{L} ]{0,8})(?:之前|以上|前面|先前|上述)(?:[\p{L} ]{0,6})(?:指令|指示|提示|规则|內容|内容)`, "忽略", "无视", "無視"),
		instructs("override of instructions", `(?:これまで|以前|上記)の(?:[\p{L} ]{0,6})(?:指示|命令|プロンプト)(?:[\p{L} ]{0,4})(?:無視|忘れ)`, "これまで", "以前", "上記"),
		instructs("override of instructions", `이전 (?:의 )?(?:모든 )?(?:지시|명령)(?:[\p{L} ]{0,18})(?:무시|잊)`, "이전"),
	})
})

// markup is what separates the messages of a conversation in the prompts of models: no text but one that wants to pass
// for another message needs it.
var markup = sync.OnceValue(func() *detector {
	return newDetector(false, []sentence{
		marks(`<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id|begin_of_text)\|>`, "<|"),
		marks(`(?:<<sys>>|\[/?inst\])`, "<<sys", "[inst", "[/inst"),
		marks(`</?(?:system|system_prompt|system-prompt|system_instructions?)>`, "<system", "</system"),
		marks(`<start_of_turn>`, "<start_of_turn"),
		marks(`###\s*(?:system|instruction|human|assistant)\s*:`, "###"),
		marks(`\n\n(?:human|assistant): `, "\n\nhuman", "\n\nassistant"),
		marks(`\n\W{0,3}(?:system|assistant|developer)(?: message| prompt| note)?\W{0,3}:\W{0,4}(?:you (?:are|must|will|should)|ignore|disregard|new instructions|override|from now on)`,
			atLineStart("system", "assistant", "developer")...),
		marks(`</(?:tool_result|function_results|tool_response|document|untrusted[a-z_]*|user_input|data)>\s*\S*\s*(?:<(?:system|user|assistant|instructions?)|system:|user:|human:|now |ignore )`,
			"</tool_res", "</function_results", "</document", "</untrusted", "</user_input", "</data"),
		{name: "a picture whose address carries data", anchors: []string{"!["},
			pattern: lazyregexp.New(`^!\[[^\]\n]{0,80}\]\(https?://[^)\s]{1,120}[?&/=](?:\{|<|\[|%7b|\$\{|INSERT|DATA|SECRET)`)},
	})
})

func marks(pattern string, anchors ...string) sentence {
	return sentence{name: "markup of a conversation", anchors: anchors, pattern: lazyregexp.New(`^(?i:` + pattern + `)`)}
}

// atLineStart are words at the beginning of a line, as they are and in usual markup.
func atLineStart(words ...string) (anchors []string) {
	for _, w := range words {
		for _, sign := range []string{"", "[", "**", "# ", "> ", "<"} {
			anchors = append(anchors, "\n"+sign+w)
		}
	}
	return anchors
}

// findInjections names what reads like an instruction to a model, each once.
func findInjections(texts []string) []string {
	var found []string
	add := func(name string) {
		if !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	for _, t := range texts {
		if hidden := tagText(t); len(hidden) >= tagBytesMin {
			add("text in characters that no screen shows")
			t += "\n" + hidden
		}
		if plain := decodedText(t); plain != "" {
			sentences().find(words(plain), func(name string) { add(name + " (encoded)") })
		}
		markup().find(append([]byte("\n"), plainText(t)...), add)
		sentences().find(words(t), add)
	}
	return found
}

// tagBytesMin is the length of a hidden text that counts.
const tagBytesMin = 8
