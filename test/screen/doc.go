// Package screen drives troupe top under tmux, as a person does.
package screen
