// The entry point: starts the shell.
import { start } from './shell/start';

start();
