package serve

import (
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// repository is the root of the tree.
const repository = "../../.."

// composeFile is what the test reads of deploy/compose.yaml.
type composeFile struct {
	Services map[string]composeService        `yaml:"services"`
	Secrets  map[string]struct{ File string } `yaml:"secrets"`
}

type composeService struct {
	Image   string
	EnvFile oneOrMore `yaml:"env_file"`
	Command []string
	Volumes []string
	Secrets []string
}

// oneOrMore is a name, or a list of names.
type oneOrMore []string

func (o *oneOrMore) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*o = oneOrMore{n.Value}
		return nil
	}
	return n.Decode((*[]string)(o))
}

// readText reads a file of the repository.
func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// decodeFile decodes a YAML file of the repository.
func decodeFile(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(readText(t, name)), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// parseFlags holds a command line against the flags of troupe-node, and returns those that are set.
func parseFlags(t *testing.T, where string, args []string) map[string]string {
	t.Helper()
	c := (&program{}).command()
	if err := c.ParseFlags(args); err != nil {
		t.Errorf("%s: %v", where, err)
	}
	if rest := c.Flags().Args(); len(rest) > 0 {
		t.Errorf("%s: troupe-node takes no arguments, not %q", where, rest)
	}
	set := map[string]string{}
	for _, name := range []string{"server", "nkey", "service-nkey", "system-nkey", "tlsca", "root", "name", "machine", "setup", "replicas", "pools", "store-dir", "http", "http-open-probes"} {
		if f := c.Flags().Lookup(name); f == nil {
			t.Fatalf("troupe-node has no flag --%s", name)
		} else if f.Changed {
			set[name] = strings.Trim(f.Value.String(), "[]")
		}
	}
	return set
}

// TestComposeFile: each command line of deploy/compose.yaml consists of flags that exist, and each file that it names is
// mounted, and is either in the repository or made by deploy/secrets.sh.
func TestComposeFile(t *testing.T) {
	var file composeFile
	decodeFile(t, "deploy/compose.yaml", &file)
	script := readText(t, "deploy/secrets.sh")
	isThere := func(where, name string) {
		t.Helper()
		if base, ok := strings.CutPrefix(path.Clean(name), "secrets/"); ok {
			if !strings.Contains(script, strings.TrimSuffix(base, ".nk")) {
				t.Errorf("%s: deploy/secrets.sh does not make %s", where, base)
			}
		} else if _, err := os.Stat(filepath.Join(repository, "deploy", name)); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	for name, secret := range file.Secrets {
		isThere("secret "+name, secret.File)
	}
	var machines []string
	nodes, servers, pools := 0, 0, ""
	for name, s := range file.Services {
		if strings.HasPrefix(s.Image, "nats:") {
			if slices.Contains(s.Command, "/etc/nats/server.conf") {
				servers++
			}
			for _, file := range s.EnvFile {
				isThere(name, file)
			}
			for _, v := range s.Volumes {
				if from, _, _ := strings.Cut(v, ":"); strings.HasPrefix(from, "./") {
					isThere(name, from)
				}
			}
			continue
		}
		set := parseFlags(t, name, s.Command)
		for _, flag := range []string{"nkey", "service-nkey", "system-nkey", "tlsca"} {
			secret, isSecret := strings.CutPrefix(set[flag], "/run/secrets/")
			if set[flag] != "" && (!isSecret || !slices.Contains(s.Secrets, secret) || file.Secrets[secret].File == "") {
				t.Errorf("%s: --%s %s is not mounted", name, flag, set[flag])
			}
		}
		for server := range strings.SplitSeq(set["server"], ",") {
			host, _, _ := strings.Cut(strings.TrimPrefix(server, "tls://"), ":")
			if !strings.HasPrefix(file.Services[host].Image, "nats:") {
				t.Errorf("%s: -s names %s, which is no server of the file", name, host)
			}
		}
		if set["setup"] == "true" {
			pools = set["pools"]
			continue
		}
		nodes++
		machines = append(machines, set["machine"])
		if set["name"] != name {
			t.Errorf("%s: the node is called %s", name, set["name"])
		}
		if !slices.ContainsFunc(s.Volumes, func(v string) bool { return strings.HasSuffix(v, ":"+set["root"]) }) {
			t.Errorf("%s: --root %s is not mounted", name, set["root"])
		}
	}
	if servers != 3 || nodes != 3 {
		t.Errorf("%d servers and %d nodes, want 3 and 3", servers, nodes)
	}
	for _, m := range machines {
		if !slices.Contains(strings.Split(pools, ","), "host-"+m) {
			t.Errorf("setup makes the pools %s, and not host-%s", pools, m)
		}
	}
}

// TestSystemdUnit: the command of the unit consists of flags that exist, and the packages install the unit, what it
// names, and the program where the unit looks for it.
func TestSystemdUnit(t *testing.T) {
	unit := map[string]string{}
	for line := range strings.Lines(readText(t, "deploy/systemd/troupe-node.service")) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			unit[key] = value
		}
	}
	words := strings.Fields(unit["ExecStart"])
	if len(words) < 2 || words[len(words)-1] != "$NODE_FLAGS" {
		t.Fatalf("ExecStart=%s", unit["ExecStart"])
	}
	set := parseFlags(t, "ExecStart", words[1:len(words)-1])
	if set["store-dir"] != "/var/lib/"+unit["StateDirectory"] || unit["StateDirectoryMode"] != "0700" {
		t.Errorf("--store-dir %s, StateDirectory=%s with the mode %s", set["store-dir"], unit["StateDirectory"], unit["StateDirectoryMode"])
	}
	if !strings.Contains(readText(t, "deploy/systemd/tmpfiles.conf"), set["root"]+" ") {
		t.Errorf("--root %s is not made by tmpfiles.conf", set["root"])
	}
	_, flags, ok := strings.Cut(readText(t, "deploy/systemd/node.env"), "NODE_FLAGS=")
	flags, _, _ = strings.Cut(flags, "\n")
	if more := parseFlags(t, "node.env", strings.Fields(flags)); !ok || more["server"] == "" {
		t.Errorf("node.env has no example of NODE_FLAGS: %q", flags)
	}

	var release struct {
		NFPMs []struct {
			Bindir   string
			Contents []struct{ Src, Dst string }
			Scripts  map[string]string
		} `yaml:"nfpms"`
	}
	decodeFile(t, ".goreleaser.yaml", &release)
	if len(release.NFPMs) != 1 || words[0] != release.NFPMs[0].Bindir+"/troupe-node" {
		t.Fatalf("ExecStart runs %s, which no package installs", words[0])
	}
	packages, installed := release.NFPMs[0], map[string]bool{}
	for _, c := range packages.Contents {
		installed[c.Dst] = true
		readText(t, c.Src)
	}
	for _, script := range packages.Scripts {
		readText(t, script)
	}
	for _, dst := range []string{"/usr/lib/systemd/system/troupe-node.service", strings.TrimPrefix(unit["EnvironmentFile"], "-")} {
		if !installed[dst] {
			t.Errorf("no package installs %s", dst)
		}
	}
	if account := unit["User"]; !strings.Contains(readText(t, "deploy/systemd/sysusers.conf"), "u "+account+" ") {
		t.Errorf("User=%s is not made by sysusers.conf", account)
	}
}

// TestImages: what the images run by default consists of flags that exist.
func TestImages(t *testing.T) {
	commands := 0
	for line := range strings.Lines(readText(t, "deploy/Dockerfile") + readText(t, "deploy/release.Dockerfile")) {
		if list, ok := strings.CutPrefix(line, "CMD "); ok {
			commands++
			var args []string
			if err := yaml.Unmarshal([]byte(list), &args); err != nil {
				t.Fatal(err)
			}
			if parseFlags(t, "CMD", args)["store-dir"] == "" {
				t.Errorf("CMD %v keeps the state outside of the volume", args)
			}
		}
	}
	if commands != 3 {
		t.Errorf("%d commands, want those of 3 images", commands)
	}
}

// manifest is what the test reads of deploy/kubernetes.yaml.
type manifest struct {
	Kind string
	Spec struct {
		Replicas int
		Template struct {
			Spec struct{ Containers []container }
		}
	}
}

type container struct {
	Args         []string
	VolumeMounts []struct {
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
	Readiness probe `yaml:"readinessProbe"`
	Liveness  probe `yaml:"livenessProbe"`
}

type probe struct {
	HTTPGet struct {
		Path string
		Port string
	} `yaml:"httpGet"`
}

// TestKubernetesManifests: the arguments of the node consist of flags that exist, its directories are on volumes, the
// probes ask the port of its HTTP server without a token, and one node alone has the state directory.
func TestKubernetesManifests(t *testing.T) {
	decoder, nodes := yaml.NewDecoder(strings.NewReader(readText(t, "deploy/kubernetes.yaml"))), 0
	for {
		var m manifest
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, c := range m.Spec.Template.Spec.Containers {
			nodes += m.Spec.Replicas
			set := parseFlags(t, m.Kind, c.Args)
			for _, flag := range []string{"store-dir", "root"} {
				isMounted := false
				for _, v := range c.VolumeMounts {
					isMounted = isMounted || strings.HasPrefix(set[flag]+"/", v.MountPath+"/")
				}
				if !isMounted {
					t.Errorf("--%s %s is on no volume", flag, set[flag])
				}
			}
			_, port, _ := strings.Cut(set["http"], ":")
			if c.Readiness.HTTPGet.Path != "/readyz" || c.Liveness.HTTPGet.Path != "/healthz" || c.Readiness.HTTPGet.Port != port ||
				c.Liveness.HTTPGet.Port != port || set["http-open-probes"] != "true" {
				t.Errorf("probes %+v and %+v of a node with the flags %v", c.Readiness, c.Liveness, set)
			}
		}
	}
	if nodes != 1 {
		t.Errorf("%d nodes with one state directory", nodes)
	}
}
