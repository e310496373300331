package embedded

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/troupe-run/troupe/internal/bus"
	"github.com/troupe-run/troupe/internal/bus/names"
)

// People decide about calls, and programs of agents do not. Such a program may have the credential of the user, whose
// account it runs in, so the front looks which process holds the connection, and marks what an agent's program
// publishes on the subjects of decisions. The node refuses marked decisions. A client that sends the mark
// itself only refuses itself.

// decisionVerbs are the verbs that an agent's program may not use: they answer questions, approve calls, or
// change prompts, tools and rights. An operator and each owner have subjects of their own for them.
var decisionVerbs = []string{"answer", "restore", "context", "run", "permissions"}

// isDecision reports whether a line publishes on a subject of decisions: of a verb, or of a verb of one machine.
func (f *proxyListener) isDecision(line []byte) bool {
	if !isPublish(line) {
		return false
	}
	verb, _, _ := strings.Cut(names.ParseVerb(f.names, string(bytes.Fields(line)[1])), ".")
	return slices.Contains(decisionVerbs, verb)
}

// isUnambiguous reports whether the server reads the same message in a line, and after it, as this front does. The server
// drops the last byte of a line with a carriage return anywhere in it, and takes the line after a verb without arguments for
// its arguments: behind such a line, a decision could pass as the payload of another message. No client library sends one.
func isUnambiguous(line []byte) bool {
	text := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	if bytes.IndexByte(text, '\r') >= 0 {
		return false
	}
	fields := bytes.Fields(text)
	if len(fields) == 1 {
		return bytes.EqualFold(fields[0], []byte("PING")) || bytes.EqualFold(fields[0], []byte("PONG"))
	}
	return len(fields) > 1
}

// forwardAgent carries what the program of an agent sends by the socket.
func (r *connRelay) forwardAgent() {
	in := bufio.NewReaderSize(r.out, ControlLineMax)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil { // the end, or a line that the server refuses for its length
			_, _ = r.in.Write(line)
			return
		}
		if !isUnambiguous(line) {
			return
		}
		switch {
		case r.proxy.isDecision(line):
			err = forwardMarked(r.in, bytes.Clone(line), in)
		default:
			_, err = r.in.Write(line)
			if err == nil && isPublish(line) {
				err = copyPayload(r.in, in, line)
			}
		}
		if err != nil {
			return
		}
	}
}

// copyPayload carries the bytes that follow the line of a message.
func copyPayload(to io.Writer, in *bufio.Reader, line []byte) error {
	size, err := payloadSize(line)
	if err == nil {
		_, err = io.CopyN(to, in, int64(size))
	}
	return err
}

// forwardMarked carries one message, with a header that says that an agent's program has sent it.
func forwardMarked(to io.Writer, line []byte, in *bufio.Reader) error {
	size, err := payloadSize(line)
	if err != nil || size > PayloadMax+ControlLineMax {
		return fmt.Errorf("embedded: a message of %d bytes: %w", size, io.ErrShortBuffer)
	}
	message := make([]byte, size)
	if _, err := io.ReadFull(in, message); err != nil {
		return err
	}
	fields := bytes.Fields(line)
	subjects, header := fields[1:len(fields)-1], []byte(plainHeader)
	if bytes.EqualFold(fields[0], []byte("HPUB")) && len(fields) > 3 {
		n, err := strconv.Atoi(string(fields[len(fields)-2]))
		if err != nil || n < 0 || n > len(message) || !bytes.Contains(message[:n], []byte("\r\n")) {
			return fmt.Errorf("embedded: a header of %d bytes: %w", n, io.ErrUnexpectedEOF)
		}
		subjects, header, message = fields[1:len(fields)-2], message[:n], message[n:]
	}
	header = markHeader(header)
	head := fmt.Appendf(nil, "HPUB %s %d %d\r\n", bytes.Join(subjects, []byte(" ")), len(header), len(header)+len(message)-len("\r\n"))
	for _, part := range [][]byte{head, header, message} {
		if _, err := to.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// plainHeader is a header of a message without any fields.
const plainHeader = "NATS/1.0\r\n\r\n"

// markHeader adds the mark to a header. A client library hands a message with a header that it cannot read on without any, and
// the node would not see the mark: it takes the place of such a header.
func markHeader(header []byte) []byte {
	mark := []byte(bus.AgentHeader + ": true\r\n")
	version, fields, _ := bytes.Cut(header, []byte("\r\n"))
	marked := slices.Concat(version, []byte("\r\n"), mark, fields)
	if h, err := nats.DecodeHeadersMsg(marked); err == nil && h.Get(bus.AgentHeader) != "" {
		return marked
	}
	return slices.Concat([]byte("NATS/1.0\r\n"), mark, []byte("\r\n"))
}
