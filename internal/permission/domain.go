package permission

import (
	"errors"
	"strings"
)

const domainWord = "domain:"

func checkDomain(pattern string) error {
	host, ok := strings.CutPrefix(pattern, domainWord)
	rest := strings.TrimPrefix(host, "*.")
	if !ok || host != "*" && (rest == "" || strings.ContainsFunc(rest, isNoHostRune)) {
		return errors.New("write domain:docs.example.com, domain:*.example.com or domain:*")
	}
	return nil
}

func isNoHostRune(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
}

// hostOf returns the host of a URL; ok is false if programs might disagree about it.
func hostOf(url string) (host string, ok bool) {
	_, rest, found := strings.Cut(strings.TrimSpace(url), "://")
	if !found {
		return "", false
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	if name, port, has := strings.Cut(rest, ":"); has {
		if rest = name; strings.Trim(port, "0123456789") != "" {
			return "", false
		}
	}
	host = strings.TrimSuffix(strings.ToLower(rest), ".")
	return host, host != "" && !strings.ContainsFunc(host, isNoHostRune)
}

func matchesHost(pattern, host string) bool {
	want := strings.ToLower(strings.TrimPrefix(pattern, domainWord))
	if below, ok := strings.CutPrefix(want, "*."); ok {
		return strings.HasSuffix(host, "."+below)
	}
	return want == "*" || want == host
}
