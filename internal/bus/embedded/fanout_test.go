package embedded_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/embedded"
)

// connectPort connects to the port in a role, as other programs do.
func connectPort(t *testing.T, e *embedded.Server, role bus.Role, options ...nats.Option) *nats.Conn {
	t.Helper()
	user, password := e.Credential(role)
	closed, register := trackClosing(t)
	nc, err := nats.Connect(e.URL(), append(options, closed, nats.UserInfo(user, password), nats.CustomInboxPrefix(bus.InboxPrefix(role)))...)
	if err != nil {
		t.Fatal(err)
	}
	register(nc)
	return nc
}

// subscribePort subscribes, and returns when the server has the subscription.
func subscribePort(t *testing.T, nc *nats.Conn, subject string) *nats.Subscription {
	t.Helper()
	sub, err := nc.SubscribeSync(subject)
	if err = errors.Join(err, nc.Flush()); err != nil {
		t.Fatal(err)
	}
	return sub
}

func publishEvents(t *testing.T, node *nats.Conn, subjects ...string) {
	t.Helper()
	for i, s := range subjects {
		if err := node.Publish(s, fmt.Appendf(nil, "%s %d", s, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := node.Flush(); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, sub *nats.Subscription, n int) (got []string) {
	t.Helper()
	for range n {
		m, err := sub.NextMsg(patience)
		if err != nil {
			t.Fatalf("%v after %q", err, got)
		}
		got = append(got, m.Subject+": "+string(m.Data))
	}
	return got
}

// Each observer of the port receives the events of its subjects, in order and once, however many observers there are;
// the server has a subscription only as long as there is an observer.
func TestObserversOfThePortReceiveTheirEvents(t *testing.T) {
	e := startServer(t, embedded.Config{Port: embedded.FreePort})
	node := connectAs(t, e, bus.RoleNode)
	const root, super, other = "troupe.evt.r1.root.turn.started", "troupe.evt.r1.super.run.finished", "troupe.evt.r2.root.turn.started"
	if e.HasInterest(root) {
		t.Error("there is interest without an observer")
	}
	all, run := []*nats.Subscription{}, []*nats.Subscription{}
	for range 5 {
		nc := connectPort(t, e, bus.RoleObserver)
		all, run = append(all, subscribePort(t, nc, "troupe.evt.>")), append(run, subscribePort(t, nc, "troupe.evt.r1.>"))
	}
	agent := subscribePort(t, connectPort(t, e, bus.RoleClient), "troupe.evt.*.root.>")
	publishEvents(t, node, root, other, super, root)
	want := []string{root + ": " + root + " 0", other + ": " + other + " 1", super + ": " + super + " 2", root + ": " + root + " 3"}
	ofRun := []string{want[0], want[2], want[3]}
	for i := range all {
		if got := receive(t, all[i], 4); !slices.Equal(got, want) {
			t.Errorf("all events: %q", got)
		}
		if got := receive(t, run[i], 3); !slices.Equal(got, ofRun) {
			t.Errorf("events of a run: %q", got)
		}
	}
	if got := receive(t, agent, 3); !slices.Equal(got, []string{want[0], want[1], want[3]}) {
		t.Errorf("events of an agent: %q", got)
	}
	for _, sub := range slices.Concat(all, run, []*nats.Subscription{agent}) {
		if n, _, _ := sub.Pending(); n != 0 {
			t.Errorf("%d events more on %s", n, sub.Subject)
		}
		if err := sub.Unsubscribe(); err != nil {
			t.Error(err)
		}
	}
	for end := time.Now().Add(patience); e.HasInterest(root); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("there is interest after the last observer")
		}
	}
}

// A client of the port may end a subscription after a number of events, has its limit of subscriptions, and hears of
// what it may not do, from the server.
func TestSubscriptionsOfThePortAreThoseOfTheServer(t *testing.T) {
	e := startServer(t, embedded.Config{Port: embedded.FreePort})
	node := connectAs(t, e, bus.RoleNode)
	said := make(chan error, 2*embedded.WatcherSubsMax)
	nc := connectPort(t, e, bus.RoleObserver, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { said <- err }))
	const subject = "troupe.evt.r1.root.turn.started"
	two := subscribePort(t, nc, "troupe.evt.>")
	rest := subscribePort(t, nc, "troupe.evt.>")
	beats := subscribePort(t, nc, "agents.hb.>")
	group, err := nc.QueueSubscribeSync("troupe.evt.>", "group")
	if err = errors.Join(err, two.AutoUnsubscribe(2), nc.Flush()); err != nil {
		t.Fatal(err)
	}
	publishEvents(t, node, subject, subject, subject, "agents.hb.one")
	receive(t, two, 2)
	if _, err := two.NextMsg(time.Second); !errors.Is(err, nats.ErrMaxMessages) {
		t.Errorf("a third event: %v", err)
	}
	receive(t, rest, 3)
	receive(t, group, 3)
	receive(t, beats, 1)
	if _, err := nc.SubscribeSync("troupe.box.>"); err != nil {
		t.Fatal(err)
	}
	if err := <-said; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("a subscription to logs: %v", err)
	}
	if err := nc.Publish(subject, []byte("SUB troupe.evt.> 99\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := <-said; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("a false event: %v", err)
	}
	for range embedded.WatcherSubsMax {
		if _, err := nc.SubscribeSync("troupe.evt.>"); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-said; !errors.Is(err, nats.ErrMaxSubscriptionsExceeded) {
		t.Errorf("too many subscriptions: %v", err)
	}
}

// A client that sends requests through the port receives replies of any content between events.
func TestRepliesAndEventsShareAConnectionOfThePort(t *testing.T) {
	e := startServer(t, embedded.Config{Port: embedded.FreePort})
	service, node := connectAs(t, e, bus.RoleService), connectAs(t, e, bus.RoleNode)
	_, err := service.Subscribe("troupe.cmd.echo", func(m *nats.Msg) {
		reply := nats.NewMsg(m.Reply)
		reply.Header.Set("X", "1")
		reply.Data = m.Data
		if err := service.PublishMsg(reply); err != nil {
			t.Error(err)
		}
	})
	if err = errors.Join(err, service.Flush()); err != nil {
		t.Fatal(err)
	}
	nc := connectPort(t, e, bus.RoleClient)
	events := subscribePort(t, nc, "troupe.evt.>")
	big := strings.Repeat("x", 100<<10) + "\r\nSUB troupe.evt.> 7\r\nMSG troupe.evt.a 1 3\r\n\r\n"
	const rounds = 50
	for i := range rounds {
		publishEvents(t, node, "troupe.evt.r1.root.turn.started", "troupe.evt.r1.root.turn.finished")
		for _, text := range []string{big, "", fmt.Sprint(i)} {
			m, err := nc.Request("troupe.cmd.echo", []byte(text), patience)
			if err != nil || string(m.Data) != text || m.Header.Get("X") != "1" {
				t.Fatalf("%v, %d bytes of %d", err, len(m.Data), len(text))
			}
		}
	}
	receive(t, events, 2*rounds)
}

// Without a credential, or with one that is wrong or answers each line, only the server decides.
func TestFanOutServesWhoMayRead(t *testing.T) {
	e := startServer(t, embedded.Config{Port: embedded.FreePort, OpenWatch: true})
	node := connectAs(t, e, bus.RoleNode)
	closed, register := trackClosing(t)
	anyone, err := nats.Connect(e.URL(), closed)
	if err != nil {
		t.Fatal(err)
	}
	register(anyone)
	sub := subscribePort(t, anyone, "troupe.evt.>")
	user, password := e.Credential(bus.RoleObserver)
	_, verbose := dialPort(t, e, fmt.Sprintf("CONNECT {\"user\":%q,\"pass\":%q,\"verbose\":true}\r\nSUB troupe.evt.> 1\r\nPING\r\n", user, password))
	readUntil(t, verbose, "+OK", "+OK", "PONG")
	publishEvents(t, node, "troupe.evt.r1.root.turn.started")
	receive(t, sub, 1)
	readUntil(t, verbose, "MSG troupe.evt.r1.root.turn.started 1")
	_, wrong := dialPort(t, e, fmt.Sprintf("CONNECT {\"user\":%q,\"pass\":\"x\"}\r\nSUB troupe.evt.> 1\r\nPING\r\n", user))
	if text, _ := io.ReadAll(wrong); !strings.Contains(string(text), "Authorization Violation") {
		t.Errorf("a wrong password: %s", text)
	}
}

// dialPort connects to the port and sends some lines.
func dialPort(t *testing.T, e *embedded.Server, lines string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(e.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, lines); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// readUntil reads lines until each of some beginnings has come, in order.
func readUntil(t *testing.T, in *bufio.Reader, begins ...string) {
	t.Helper()
	for _, want := range begins {
		for line := ""; !strings.HasPrefix(line, want); {
			var err error
			if line, err = in.ReadString('\n'); err != nil {
				t.Fatalf("%v before %q", err, want)
			}
		}
	}
}

// An observer that takes nothing for StalledMax is disconnected, though its limit is far away.
func TestAttackStoppedObserverIsDisconnected(t *testing.T) {
	t.Parallel()
	e := startServer(t, embedded.Config{Port: embedded.FreePort})
	user, password := e.Credential(bus.RoleObserver)
	conn, in := dialPort(t, e, fmt.Sprintf("CONNECT {\"user\":%q,\"pass\":%q,\"verbose\":false}\r\nSUB troupe.evt.> 1\r\nPING\r\n", user, password))
	readUntil(t, in, "PONG")
	node := connectAs(t, e, bus.RoleNode)
	for range 16 {
		if err := errors.Join(node.Publish("troupe.evt.run.root.turn.started", make([]byte, embedded.PayloadMax)), node.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(embedded.StalledMax + patience)
	for err := error(nil); err == nil; <-time.After(10 * time.Millisecond) {
		if _, err = conn.Write([]byte("PING\r\n")); time.Now().After(end) {
			t.Fatal("it is not disconnected")
		}
	}
	for end := time.Now().Add(patience); e.HasInterest("troupe.evt.run.root.turn.started"); <-time.After(pause) {
		if time.Now().After(end) {
			t.Fatal("it is still subscribed")
		}
	}
}
