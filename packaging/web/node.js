// What a process has and a page does not: its environment, and the folder of the program, where its assets lie.
Module.preRun = [() => {
    Object.assign(ENV, process.env);
    ENV.FP8LAB_ASSETS ??= require('path').join(__dirname, 'assets');
}];
