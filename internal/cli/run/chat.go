package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
)

// lineBytesMax bounds one message of a chat: more than a node accepts, so that the node reports it.
const lineBytesMax = 256 << 10

// chatHelp says what may be typed.
const chatHelp = "each line is a message; /NAME calls a command of the project; /exit, /quit or Ctrl-D ends the chat"

// endsChat reports whether a line ends a chat.
func endsChat(line string) bool { return line == "/exit" || line == "/quit" }

// Chat makes the command chat.
func (cs *Commands) Chat() *cobra.Command {
	var flags request.Flags
	c := &cobra.Command{
		Use: "chat", Args: command.NoArguments,
		Short: "Talk with an agent: each line is a message of one conversation",
		Long: `Read messages, one a line, run each and print its answer. All of them belong to one
conversation: each run goes on with the history and the journal of the one before it.
--agent names the agent that gets the first message; if it hands off the conversation,
later messages go to the agent that has it.
The conversation stays; "troupe chat --conversation ID" goes on with it, today or
another day. An empty line is skipped; "/exit", "/quit" or the end of the input ends the chat,
and "/help" says so.
A message whose run fails is reported, and the next one goes on; the exit code is then
that of the last run that failed. If nobody types the messages, the chat ends with code 5
at a run that waits for a person, and says how many lines were not sent.`,
		Example: `  troupe chat --dir .
  troupe chat --conversation plans
  printf 'List the packages\nWhich has no test?\n' | troupe chat --dir . -q`,
		Annotations: map[string]string{command.Formats: command.RunFormats},
		RunE: func(c *cobra.Command, _ []string) error {
			for _, name := range notInChat {
				if c.Flags().Changed(name) {
					return exit.UsageError("begin the conversation with troupe run --"+name+" … --conversation ID, then chat",
						"--%s is for one run", name)
				}
			}
			if err := flags.CheckConversation(c); err != nil {
				return err
			}
			return cs.chat(c, &flags)
		},
	}
	flags.AddFlags(c.Flags())
	for _, name := range notInChat {
		_ = c.Flags().MarkHidden(name) // it exists
	}
	return c
}

// notInChat are the flags of a single run.
var notInChat = []string{"run-id", "fork", "history", "attach", "at", "every", "zone", "missed", "overlap", "on"}

// chat runs one message after the other.
func (cs *Commands) chat(c *cobra.Command, flags *request.Flags) error {
	if err := cs.beginConversation(flags); err != nil {
		return err
	}
	cs.conversation = flags.Request.Conversation
	typed := term.IsTTY(cs.Console.In)
	if !cs.Console.Quiet {
		cs.Console.Say("conversation " + term.CleanLine(flags.Request.Conversation))
		if typed {
			cs.Console.Say(chatHelp)
		}
	}
	lines := bufio.NewScanner(cs.Console.In)
	lines.Buffer(nil, lineBytesMax)
	var failed error
	for {
		if typed {
			_, _ = fmt.Fprint(cs.Console.Err, "> ") // a terminal that is gone ends the input, too
		}
		if !lines.Scan() {
			break
		}
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		if endsChat(text) {
			break
		}
		if text == "/help" {
			cs.Console.Say(chatHelp)
			continue
		}
		err := cs.say(c, *flags, text)
		flags.KeepsHolder = true // --agent begins the conversation; later messages go to the agent that has it
		if err == nil {
			continue
		}
		f := exit.Explain(err)
		cs.Console.Report(f)
		failed = exit.WithCode(f.Code)           // it was reported
		if f.Code == exit.NeedsHuman && !typed { // the next message would wait for the answer, and nobody would learn why
			return stopAtQuestion(lines, cs.conversation)
		}
		if f.Code == exit.Interrupted || f.Code == exit.Terminated {
			break
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("read the messages: %w", err)
	} else if err != nil {
		return exit.UsageError("put long material into a file of the directory",
			"a message has more than %d bytes", lineBytesMax)
	}
	return failed
}

// stopAtQuestion ends a chat that a person does not type: its last run waits for a person.
func stopAtQuestion(lines *bufio.Scanner, conversation string) error {
	rest := "no line was left"
	n, all := countLines(lines)
	switch {
	case !all:
		rest = "the lines that follow were not sent"
	case n > 0:
		rest = term.FormatCount(n, "line") + " not sent"
	}
	return &exit.Failure{Code: exit.NeedsHuman, Err: fmt.Errorf("the chat ends here, because its run waits for a person: %s", rest),
		Hint: "troupe questions lists the question and troupe answer answers it; troupe chat --conversation " + session.QuoteForShell(conversation) + " goes on with the lines that were not sent"}
}

// countWait is how long the rest of the input may take: a program may keep its pipe open.
const countWait = time.Second

// countLines counts the messages of the rest of the input; all: there are no more.
func countLines(lines *bufio.Scanner) (n int, all bool) {
	counted := make(chan int, 1)
	go func() {
		count := 0
		for lines.Scan() {
			if text := strings.TrimSpace(lines.Text()); text != "" && !endsChat(text) && text != "/help" {
				count++
			}
		}
		counted <- count
	}()
	select {
	case n = <-counted:
		return n, true
	case <-time.After(countWait):
		return 0, false
	}
}

// beginConversation decides once to which conversation all messages of a chat belong.
func (cs *Commands) beginConversation(flags *request.Flags) error {
	switch flags.Request.Conversation {
	case "":
		flags.Request.Conversation = client.NewID()
		return nil
	case request.LastConversation:
	default:
		return nil
	}
	if err := request.AbsoluteDir(&flags.Request.Dir); err != nil {
		return err
	}
	return cs.Sessions.Visit(session.ToInspect, func(_ context.Context, s *session.Session) error { return flags.ResolveConversation(s) })
}

// say runs one message. flags is a copy: each message is a request of its own.
func (cs *Commands) say(c *cobra.Command, flags request.Flags, text string) error {
	if err := flags.CompleteMessage(cs.Console, cs.Origins, c, text); err != nil {
		return err
	}
	return cs.followRun(&flags, nil)
}
