// Package screen implements troupe top: it connects the model in internal/top to a terminal and a node.
package screen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/troupe-run/troupe/client"
	"github.com/troupe-run/troupe/internal/cli/command"
	"github.com/troupe-run/troupe/internal/cli/console"
	"github.com/troupe-run/troupe/internal/cli/exit"
	"github.com/troupe-run/troupe/internal/cli/interrupt"
	"github.com/troupe-run/troupe/internal/cli/request"
	"github.com/troupe-run/troupe/internal/cli/session"
	"github.com/troupe-run/troupe/internal/term"
	"github.com/troupe-run/troupe/internal/top"
)

const (
	framesPerSecond = 20 // at most: an SSH connection may be slow
	tickInterval    = time.Second
)

// Commands holds what the command top needs.
type Commands struct {
	Console  *console.Console
	Sessions *session.Opener
	// Begin begins a run with the flags of the command start, and returns what that command says.
	Begin func(ctx context.Context, flags []string, prompt string) (client.RunAccepted, string, error)
}

// Top makes the command top.
func (cs *Commands) Top() *cobra.Command {
	return &cobra.Command{
		Use: "top [RUN]", Args: checkArguments,
		Short: "Watch and steer runs on a screen of the terminal",
		Long: `Show the runs of a running node in a full-screen terminal view: the tree of a run, its
agents, transcripts, budget and timeline, and the questions that wait for you. The bottom
line names the keys of each view, and ? shows all of them (docs/top.md). It works over SSH
and needs at least 40 columns and 10 lines.

The screen needs a node that is running: troupe-node, or troupe run in another terminal.
Without one, top RUN prints the result of a run that has ended. q leaves the screen; the
runs continue.`,
		Example: "  troupe top\n  troupe top last\n  troupe top 01k9z3 -s nats://127.0.0.1:4222",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := cs.checkTerminal(); err != nil {
				return err
			}
			run := ""
			if len(args) == 1 {
				run = args[0]
			}
			return cs.show(run)
		},
	}
}

func checkArguments(c *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	return command.Exactly("RUN")(c, args)
}

// checkTerminal rejects terminals that cannot show the screen, and tools or hooks of a run.
func (cs *Commands) checkTerminal() error {
	c := cs.Console
	if !term.IsTTY(c.In) || !term.CanDraw(c.Out, c.Getenv) {
		return exit.UsageError("troupe list, troupe events RUN -f and troupe questions work everywhere",
			"troupe top needs an interactive terminal for input and output, and TERM other than dumb")
	}
	return request.RefuseAgents(c.Getenv)
}

// show draws the screen until the person leaves it.
func (cs *Commands) show(word string) (err error) {
	sig := interrupt.Catch()
	defer sig.Stop()
	n := newNode(sig.Starting, func(ctx context.Context) (*session.Session, error) { return cs.Sessions.Open(ctx, session.ToJoin) })
	n.begin = cs.Begin
	defer func() { err = errors.Join(err, n.close()) }()
	run, err := n.findRun(word)
	if word != "" && isWithoutNode(err) {
		return cs.showEnd(word, err)
	}
	if err != nil && word == "" && !cs.Sessions.Conn.NamesServer() && isWithoutNode(err) {
		return &exit.Failure{Code: exit.NoNode, Err: session.ErrNoNode, Hint: "start troupe-node; without one troupe list shows the runs, and troupe top RUN the result of one"}
	}
	if err != nil {
		return err
	}
	screen := &program{model: top.New(top.Config{Style: cs.Console.Style, Run: run, User: request.UserName(), Now: time.Now(), NewID: client.NewID}), node: n}
	p := tea.NewProgram(screen, tea.WithContext(sig.Starting), tea.WithInput(cs.Console.In), tea.WithOutput(cs.Console.Out), tea.WithEnvironment(os.Environ()), tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond))
	n.send = func(in top.Input) { p.Send(in) }
	_, err = p.Run()
	if late := n.finishBegins(cs.Console.Say); late != nil && sig.Starting.Err() != nil {
		cs.Console.Say(term.CleanLine(late.Error())) // the exit code is that of the signal
	} else if late != nil {
		err = errors.Join(err, late)
	}
	if sig.Starting.Err() != nil {
		return exit.WithCode(sig.ExitCode())
	}
	if errors.Is(err, tea.ErrProgramPanic) {
		return fmt.Errorf("screen: %w", err)
	}
	return err
}

// isWithoutNode reports whether an error says that no node is running, or that it has just ended.
func isWithoutNode(err error) bool {
	var f *exit.Failure
	return errors.As(err, &f) && f.Code == exit.NoNode || errors.Is(err, client.ErrUnavailable)
}

// showEnd prints how a run ended whose node has ended, too. Of a run that has not ended it returns the error.
func (cs *Commands) showEnd(word string, without error) error {
	return cs.Sessions.VisitRun(session.ToInspect, word, func(ctx context.Context, s *session.Session, run string) error {
		info, err := s.Get(ctx, run)
		if err != nil {
			return errors.Join(without, err)
		}
		if info.State != client.RunFinished || info.Result == nil {
			return &exit.Failure{Code: exit.NoNode, Err: fmt.Errorf("%s has not ended (%s), and no node is running", run, info.State),
				Hint: s.Command("run --resume "+run) + " continues it; " + s.Command("transcript "+run) + " and " + s.Command("events "+run) + " show what it has done"}
		}
		cs.Console.Say(term.CleanLine(fmt.Sprintf("%s has ended (%s), and no node is running: this is its result", run, term.FormatReason(info.Result.Reason))))
		cs.Console.Say(term.CleanLine("a page with its tree, timeline and transcripts: " + s.Command("export "+run+" --html") + " > run.html"))
		return cs.Console.PrintResult(*info.Result, s)
	})
}

// program adapts top.Model to bubbletea.
type program struct {
	model *top.Model
	node  *nodeLink
}

func (p *program) Init() tea.Cmd { return tea.Batch(p.commands(p.model.Start()), tick()) }

// tick sends the time to the model once per interval.
func tick() tea.Cmd {
	return tea.Tick(tickInterval, func(at time.Time) tea.Msg { return top.Ticked{At: at} })
}

func (p *program) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.KeyPressMsg:
		return p, p.update(top.Key{Name: m.String(), Text: m.Key().Text, At: time.Now()})
	case tea.PasteMsg:
		return p, p.update(top.Pasted{Text: m.Content})
	case tea.WindowSizeMsg:
		return p, p.update(top.Resized{Width: m.Width, Height: m.Height})
	case top.Ticked:
		return p, tea.Batch(p.update(m), tick())
	case top.Fetched:
		p.node.noteShown(m.Effect)
		return p, p.update(m)
	case top.Input:
		return p, p.update(m)
	}
	return p, nil
}

func (p *program) update(in top.Input) tea.Cmd { return p.commands(p.model.Update(in)) }

// commands executes effects, each in a goroutine of bubbletea. That may never call a command that it got as the screen is
// left: so runs begin in goroutines of their own.
func (p *program) commands(effects []top.Effect) tea.Cmd {
	var list []tea.Cmd
	for _, e := range effects {
		if _, ok := e.(top.Quit); ok {
			return tea.Quit
		}
		if b := p.node.beginInBackground(e); b != nil {
			list = append(list, func() tea.Msg {
				<-b.done
				return answerOf(e, b.data, b.isLost, b.err)
			})
			continue
		}
		var run *followed
		if f, ok := e.(top.Follow); ok {
			run = p.node.beginFollow(f.Run)
		}
		list = append(list, func() tea.Msg {
			answer, ok := p.node.carryOut(e, run)
			if !ok {
				return nil
			}
			return answer
		})
	}
	return tea.Batch(list...)
}

func (p *program) View() tea.View {
	v := tea.NewView(p.model.View())
	v.AltScreen, v.WindowTitle = true, "troupe top"
	return v
}
